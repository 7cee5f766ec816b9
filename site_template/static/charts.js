// Charts: the drawing that stands in the page is replaced by a plotly figure when it is first looked at.
"use strict";
(() => {
  const plotlyPath = document.currentScript.dataset.plotly;
  let loading = null;

  function loadPlotly() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = plotlyPath;
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    });
    return loading;
  }

  function withPageColors(layout) {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink-soft").trim();
    const line = style.getPropertyValue("--line").trim();
    const colored = { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" };
    colored.font = { color: ink, family: style.getPropertyValue("--sans").trim(), size: 12 };
    colored.hoverlabel = { bgcolor: style.getPropertyValue("--paper").trim(), font: { color: style.getPropertyValue("--ink").trim() } };
    for (const axis of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
      colored[axis] = { ...layout[axis], gridcolor: line, zerolinecolor: line, linecolor: line };
    }
    colored.shapes = (layout.shapes || []).map((shape) => ({
      ...shape,
      line: { ...shape.line, color: ink },
      label: { ...shape.label, font: { color: ink, size: 10 } },
    }));
    return colored;
  }

  async function draw(chart) {
    const { data, layout } = JSON.parse(chart.querySelector('script[type="application/json"]').textContent);
    await loadPlotly();
    const place = document.createElement("div");
    place.className = "chart-live";
    place.style.height = `${layout.height}px`;
    chart.querySelector("script").before(place);
    const config = { displaylogo: false, responsive: true, displayModeBar: false };
    await window.Plotly.newPlot(place, data, withPageColors(layout), config);
    chart.querySelector(".chart-scroll").hidden = true;
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      watcher.unobserve(entry.target);
      draw(entry.target).catch(() => {}); // the drawing in the page stays
    }
  });
  document.querySelectorAll("figure.chart:has(script)").forEach((chart) => watcher.observe(chart));
})();
