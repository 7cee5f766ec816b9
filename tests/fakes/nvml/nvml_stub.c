/* A libnvidia-ml.so.1 with two made-up GPUs, for machines without one. FAKE_NVML says how it behaves:
 *   good (or unset)  every figure is in its range
 *   hang             the first sample never answers; hang_at_start: starting the library never answers
 *   crash            the first sample ends the process by SIGSEGV; crash_at_start: starting the library does
 *   lost             GPU 1 answers "GPU is lost" (15) to everything
 *   absurd           figures of a driver in trouble: 4294967295
 *   no_driver        the library is there, the driver is not (9)
 *   noisy            the library prints lines of its own
 *   xid              GPU 1 raises Xid 79 once
 *   bare             the GPU has no power, ECC or utilisation figures: "not supported" (3)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15 };

typedef struct gpu { unsigned int index; } *device;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct {
    device device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
} event;

static struct gpu gpus[2] = {{0}, {1}};

static int is(const char *mode) {
    const char *wanted = getenv("FAKE_NVML");
    return wanted != NULL && strcmp(wanted, mode) == 0;
}

static int answer(device gpu, unsigned int *figure, unsigned int value) {
    if (is("lost") && gpu->index == 1) return GPU_IS_LOST;
    *figure = is("absurd") ? 4294967295u : value;
    return SUCCESS;
}

static int answer_unless_bare(device gpu, unsigned int *figure, unsigned int value) {
    return is("bare") ? NOT_SUPPORTED : answer(gpu, figure, value);
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    if (is("hang_at_start")) for (;;) pause();
    if (is("crash_at_start")) raise(SIGSEGV);
    if (is("noisy")) { puts("libnvidia-ml: a line of the library's own"); fflush(stdout); }
    return is("no_driver") ? DRIVER_NOT_LOADED : SUCCESS;
}
int nvmlSystemGetDriverVersion(char *text, unsigned int size) { snprintf(text, size, "570.86.15"); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12080; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, device *gpu) { *gpu = &gpus[index]; return SUCCESS; }
int nvmlDeviceGetIndex(device gpu, unsigned int *index) { *index = gpu->index; return SUCCESS; }
int nvmlDeviceGetName(device gpu, char *text, unsigned int size) {
    if (is("lost") && gpu->index == 1) return GPU_IS_LOST;
    snprintf(text, size, "NVIDIA Fake %u", gpu->index);
    return SUCCESS;
}
int nvmlDeviceGetUUID(device gpu, char *text, unsigned int size) {
    if (is("lost") && gpu->index == 1) return GPU_IS_LOST;
    snprintf(text, size, "GPU-0000000%u", gpu->index);
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(device gpu, memory *info) {
    if (is("lost") && gpu->index == 1) return GPU_IS_LOST;
    info->total = is("absurd") ? ~0ull : 24ull << 30;
    info->used = 6ull << 30;
    info->free = info->total - info->used;
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(device gpu, utilization *rates) {
    if (is("hang")) for (;;) pause();
    if (is("crash")) raise(SIGSEGV);
    rates->memory = 40;
    return answer_unless_bare(gpu, &rates->gpu, 97);
}
int nvmlDeviceGetPowerUsage(device gpu, unsigned int *milliwatts) { return answer_unless_bare(gpu, milliwatts, 143500); }
int nvmlDeviceGetEnforcedPowerLimit(device gpu, unsigned int *milliwatts) {
    return answer_unless_bare(gpu, milliwatts, 145000);
}
int nvmlDeviceGetTemperature(device gpu, int sensor, unsigned int *celsius) { (void)sensor; return answer(gpu, celsius, 71); }
int nvmlDeviceGetClockInfo(device gpu, int kind, unsigned int *mhz) { return answer(gpu, mhz, kind == 1 ? 2100 : 9001); }
int nvmlDeviceGetCurrPcieLinkGeneration(device gpu, unsigned int *gen) { return answer(gpu, gen, 4); }
int nvmlDeviceGetCurrPcieLinkWidth(device gpu, unsigned int *width) { return answer(gpu, width, 8); }
int nvmlDeviceGetMaxPcieLinkGeneration(device gpu, unsigned int *gen) { return answer(gpu, gen, 5); }
int nvmlDeviceGetMaxPcieLinkWidth(device gpu, unsigned int *width) { return answer(gpu, width, 16); }
int nvmlDeviceGetCurrentClocksThrottleReasons(device gpu, unsigned long long *reasons) {
    if (is("lost") && gpu->index == 1) return GPU_IS_LOST;
    *reasons = is("absurd") ? ~0ull : 4;
    return SUCCESS;
}
int nvmlDeviceGetEccMode(device gpu, unsigned int *current, unsigned int *pending) {
    *pending = 1;
    return answer_unless_bare(gpu, current, 1);
}
int nvmlDeviceGetTotalEccErrors(device gpu, int kind, int since, unsigned long long *count) {
    (void)kind; (void)since;
    if (is("bare")) return NOT_SUPPORTED;
    if (is("lost") && gpu->index == 1) return GPU_IS_LOST;
    *count = is("absurd") ? ~0ull : 0;
    return SUCCESS;
}
int nvmlEventSetCreate(void **set) { *set = gpus; return SUCCESS; }
int nvmlDeviceRegisterEvents(device gpu, unsigned long long types, void *set) {
    (void)gpu; (void)types; (void)set;
    return SUCCESS;
}
int nvmlEventSetWait_v2(void *set, event *data, unsigned int timeout_ms) {
    static int raised = 0;
    (void)set; (void)timeout_ms;
    if (!is("xid") || raised++) return TIMEOUT;
    data->device = &gpus[1];
    data->type = 8;
    data->data = 79;
    return SUCCESS;
}
