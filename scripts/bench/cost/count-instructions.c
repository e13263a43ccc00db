// A plug-in of QEMU's user-mode emulation: adds up the instructions of each thread in a file, where the bench reads them at any time.
// The few functions it needs are declared here, because QEMU's packages bring no header; API is QEMU's version of them.
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 512, WORDS_APART = 8, NO_FLAGS = 0 };

typedef void (*when_run)(unsigned thread, void *data);
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*callback)(uint64_t id, void *block));
extern size_t qemu_plugin_tb_n_insns(const void *block);
extern void qemu_plugin_register_vcpu_tb_exec_cb(void *block, when_run callback, int flags, void *data);

int qemu_plugin_version = API;

static uint64_t *counts;

static void run(unsigned thread, void *instructions) {
  counts[thread % THREADS * WORDS_APART] += (uintptr_t)instructions;
}

static void translated(uint64_t id, void *block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_cb(block, run, NO_FLAGS, (void *)qemu_plugin_tb_n_insns(block));
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
  (void)info;
  const char *path = argc == 1 ? strchr(argv[0], '=') : NULL;
  int file = path == NULL ? -1 : open(path + 1, O_RDWR);
  if (file == -1) return -1;
  counts = mmap(NULL, THREADS * WORDS_APART * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (counts == MAP_FAILED) return -1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  return 0;
}
