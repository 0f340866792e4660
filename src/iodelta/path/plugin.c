/*
 * Counts executed guest instructions per translation block of qemu's TCG, apart for phases that the guest announces.
 *
 * The guest announces phase N by executing the code at MARKS + 16 * N (marks.c); phase 0 is not counted. At every change
 * of phase the counts of the phase that ends go to the file given as out=FILE: "phase pc instructions executions".
 *
 * qemu's plugin interface is declared by hand (docs/devel/tcg-plugins.rst), so that no headers of qemu are needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARKS UINT64_C(0x7e000000)
#define PHASES 1024
#define BUCKETS (1u << 18)

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

__attribute__((visibility("default"))) int qemu_plugin_version = API;

struct block {
    uint64_t pc, instructions, executions;
    struct block *next;
};

static struct block *blocks[BUCKETS];
static unsigned phase;
static FILE *out;

static void flush(void)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct block *one = blocks[bucket]; one; one = one->next) {
            if (phase && one->executions)
                fprintf(out, "%u %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", phase, one->pc, one->instructions,
                        one->executions);
            one->executions = 0;
        }
}

static void executed(unsigned cpu, void *data)
{
    (void)cpu;
    ((struct block *)data)->executions++;
}

static void marked(unsigned cpu, void *data)
{
    (void)cpu;
    flush();
    phase = (unsigned)(uintptr_t)data;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    uint64_t pc = qemu_plugin_tb_vaddr(tb), instructions = qemu_plugin_tb_n_insns(tb);
    unsigned bucket = (unsigned)((pc ^ pc >> 18 ^ instructions << 7) % BUCKETS);
    struct block *one;

    (void)id;
    if (pc >= MARKS && pc < MARKS + 16 * PHASES) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, marked, 0, (void *)(uintptr_t)((pc - MARKS) / 16));
        return;
    }
    for (one = blocks[bucket]; one; one = one->next)
        if (one->pc == pc && one->instructions == instructions)
            break;
    if (!one) {
        one = calloc(1, sizeof(*one));
        if (!one)
            abort();
        one->pc = pc;
        one->instructions = instructions;
        one->next = blocks[bucket];
        blocks[bucket] = one;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, one);
}

static void ended(plugin_id id, void *data)
{
    (void)id;
    (void)data;
    flush();
    fclose(out);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4))
            out = fopen(argv[i] + 4, "w");
    if (!out)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
