// Ages beside absolute times, and a warning where the page is older than two harvests. The clock is the reader's.
"use strict";
(() => {
  const SPANS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

  function age(seconds) {
    const [unit, size] = SPANS.find(([, each]) => Math.abs(seconds) >= each) || SPANS[3];
    return `${Math.floor(Math.abs(seconds) / size)} ${unit} ${seconds < 0 ? "ahead" : "ago"}`;
  }

  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const seconds = (now - Date.parse(time.dateTime)) / 1000;
    if (Number.isFinite(seconds)) {
      time.title = age(seconds);
    }
  }

  const fresh = document.getElementById("fresh");
  if (fresh) {
    const time = fresh.querySelector("time");
    time.textContent += ` (${time.title})`;
    if (now > Date.parse(fresh.dataset.validUntil)) {
      fresh.classList.add("stale");
      fresh.prepend("▲ This is old: no harvest has come since. Look at the harvest first. ");
    }
  }
})();
