/*
 * Counts executed guest instructions per translation block of qemu's TCG, apart for phases that the guest announces.
 *
 * The guest announces phase N by executing the code at MARKS + 16 * N (marks.c); phase 0 is not counted. At every change
 * of phase the counts of the phase that ends go to the file given as out=FILE: "phase pc instructions executions", and
 * how many instructions of each class (enum class, in its order) the block holds.
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
struct qemu_plugin_insn;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
#if API < 3
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
#else
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
#endif

__attribute__((visibility("default"))) int qemu_plugin_version = API;

#define LONGEST 15 /* bytes of an instruction */

/* Instructions that cost more than others: Intel's Software Developer's Manual, volume 2, appendix A. */
enum class { LOCKED, FENCE, CLOCK, INDIRECT, STRING, CLASSES };

struct block {
    uint64_t pc, instructions, executions;
    uint8_t held[CLASSES];
    struct block *next;
};

static struct block *blocks[BUCKETS];
static unsigned phase;
static FILE *out;

static void write_block(const struct block *one)
{
    fprintf(out, "%u %" PRIx64 " %" PRIu64 " %" PRIu64, phase, one->pc, one->instructions, one->executions);
    for (unsigned class = 0; class < CLASSES; class++)
        fprintf(out, " %u", one->held[class]);
    fputc('\n', out);
}

static void flush(void)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct block *one = blocks[bucket]; one; one = one->next) {
            if (phase && one->executions)
                write_block(one);
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

static int is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x26 ||
           byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x64 || byte == 0x65;
}

static int is_string(uint8_t opcode)
{
    return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
           (opcode >= 0xaa && opcode <= 0xaf);
}

/* The class of an instruction whose opcode begins with 0x0f. */
static enum class two_bytes(const uint8_t *code, int repeats)
{
    if (code[1] == 0x31 || (code[1] == 0x01 && code[2] == 0xf9)) /* rdtsc, rdtscp */
        return CLOCK;
    if (code[1] == 0xae && code[2] >= 0xe8 && !repeats) /* lfence, mfence, sfence */
        return FENCE;
    return CLASSES;
}

/* The class of an instruction, CLASSES if none; code is followed by zeros. */
static enum class class_of(const uint8_t *code)
{
    int locked = 0, repeats = 0;

    for (; is_prefix(*code); code++) {
        locked |= *code == 0xf0;
        repeats |= *code == 0xf2 || *code == 0xf3;
    }
    if ((*code & 0xf0) == 0x40) /* REX */
        code++;
    if (locked)
        return LOCKED;
    if (code[0] == 0x0f)
        return two_bytes(code, repeats);
    if ((code[0] == 0x86 || code[0] == 0x87) && code[1] < 0xc0) /* xchg with memory locks without a prefix */
        return LOCKED;
    if (code[0] == 0xff && ((code[1] >> 3 & 7) == 2)) /* call through a register or memory */
        return INDIRECT;
    return repeats && is_string(code[0]) ? STRING : CLASSES;
}

static void classify(const struct qemu_plugin_tb *tb, uint8_t *held)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[LONGEST + 3] = {0};
        size_t size = qemu_plugin_insn_size(insn);
        enum class class;

        if (size > LONGEST)
            size = LONGEST;
#if API < 3
        memcpy(code, qemu_plugin_insn_data(insn), size);
#else
        qemu_plugin_insn_data(insn, code, size);
#endif
        class = class_of(code);
        if (class != CLASSES && held[class] < UINT8_MAX)
            held[class]++;
    }
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    uint64_t pc = qemu_plugin_tb_vaddr(tb), instructions = qemu_plugin_tb_n_insns(tb);
    unsigned bucket = (unsigned)((pc ^ pc >> 18 ^ instructions << 7) % BUCKETS);
    uint8_t held[CLASSES] = {0};
    struct block *one;

    (void)id;
    if (pc >= MARKS && pc < MARKS + 16 * PHASES) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, marked, 0, (void *)(uintptr_t)((pc - MARKS) / 16));
        return;
    }
    classify(tb, held); /* the kernel patches its own code: one address may hold several blocks */
    for (one = blocks[bucket]; one; one = one->next)
        if (one->pc == pc && one->instructions == instructions && !memcmp(one->held, held, sizeof(held)))
            break;
    if (!one) {
        one = calloc(1, sizeof(*one));
        if (!one)
            abort();
        one->pc = pc;
        one->instructions = instructions;
        memcpy(one->held, held, sizeof(held));
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
