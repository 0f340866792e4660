/*
 * Counts executed guest instructions per translation block of qemu's TCG, apart for phases that the guest announces.
 *
 * The guest announces phase N by executing the code at MARKS + 16 * N (marks.c); phase 0 is not counted. At every change
 * of phase the counts of the phase that ends go to the file given as out=FILE: "phase pc instructions executions", and
 * how many instructions of each class (enum class, in its order) the block holds.
 *
 * With tree=FILE and epochs=FILE calls and memory are counted too (tree.c, footprint.c), from the guest's command ARM on:
 * until then nothing but marks is watched, so that a boot costs what it costs without a plugin. Before ARM the guest names
 * addresses of its kernel: their digits as marks from DIGITS on, then the mark that says what is there. Code from
 * floor=ADDRESS on is followed; the kernel's, unless a program of known content is counted. marks=ADDRESS moves the marks.
 */
#include "plugin.h"

#define PHASES 1024u
#define DIGITS PHASES
enum command { BOUNDARY = DIGITS + 16, ENTRY_INTERRUPT, ENTRY_EXCEPTION, ARM, MARKED };
#define BUCKETS (1u << 18)
#define PLACES 512
#define MARKS UINT64_C(0x7e000000)

__attribute__((visibility("default"))) int qemu_plugin_version = API;

#define LONGEST 15 /* bytes of an instruction */

static struct block *blocks[BUCKETS];
static unsigned phase;
static FILE *out;

static struct {
    FILE *tree, *epochs; /* both are null where blocks alone are counted */
    int armed;
    uint64_t marks, floor;
    uint64_t spoken; /* the digits that the guest gave so far */
    struct place {
        uint64_t address;
        enum entry entry; /* NO_ENTRY: an I/O begins there */
    } places[PLACES];
    unsigned known;
} anatomy = {.marks = MARKS, .floor = UINT64_C(1) << 47};

void *must_calloc(size_t number, size_t size)
{
    void *made = calloc(number, size);

    if (!made)
        abort();
    return made;
}

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
    if (anatomy.tree) {
        tree_flush(phase);
        footprint_flush();
    }
}

static void executed(unsigned cpu, void *data)
{
    (void)cpu;
    ((struct block *)data)->executions++;
}

static void executed_and_followed(unsigned cpu, void *data)
{
    (void)cpu;
    ((struct block *)data)->executions++;
    tree_block(data);
    if (phase)
        footprint_block(data, phase);
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb);
static void ended(plugin_id id, void *data);

/* qemu has forgotten all code and all callbacks: from here on everything is watched. */
static void armed(plugin_id id)
{
    anatomy.armed = 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
}

static void name_place(enum entry entry)
{
    if (anatomy.known == PLACES)
        abort();
    anatomy.places[anatomy.known++] = (struct place){anatomy.spoken, entry};
    anatomy.spoken = 0;
}

static plugin_id own;

static void commanded(unsigned mark)
{
    switch (mark) {
    case BOUNDARY:
        name_place(NO_ENTRY);
        break;
    case ENTRY_INTERRUPT:
        name_place(INTERRUPT);
        break;
    case ENTRY_EXCEPTION:
        name_place(EXCEPTION);
        break;
    case ARM:
        if (anatomy.tree && !anatomy.armed)
            qemu_plugin_reset(own, armed);
        break;
    default:
        anatomy.spoken = anatomy.spoken << 4 | (mark - DIGITS);
    }
}

static void marked(unsigned cpu, void *data)
{
    unsigned mark = (unsigned)(uintptr_t)data;

    (void)cpu;
    if (anatomy.tree)
        tree_forget();
    if (mark >= PHASES) {
        commanded(mark);
        return;
    }
    flush();
    phase = mark;
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

static void read_code(const struct qemu_plugin_insn *insn, uint8_t *code)
{
    size_t size = qemu_plugin_insn_size(insn);

    if (size > LONGEST)
        size = LONGEST;
#if API < 3
    memcpy(code, qemu_plugin_insn_data(insn), size);
#else
    qemu_plugin_insn_data(insn, (void *)code, size);
#endif
}

static enum step step_of(const uint8_t *code)
{
    while (is_prefix(*code))
        code++;
    if ((*code & 0xf0) == 0x40) /* REX */
        code++;
    if (code[0] == 0xe8 || (code[0] == 0xff && ((code[1] >> 3 & 7) == 2)))
        return CALL;
    if (code[0] == 0xc2 || code[0] == 0xc3)
        return RETURN;
    return code[0] == 0xcf ? INTERRUPT_RETURN : NO_STEP;
}

static void watch(struct qemu_plugin_insn *insn, const uint8_t *code, int followed)
{
    enum step step = step_of(code);

    footprint_watch(insn, followed);
    if (followed && step != NO_STEP)
        tree_watch(insn, step);
}

static void classify(const struct qemu_plugin_tb *tb, uint8_t *held, int followed)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t code[LONGEST + 3] = {0};
        enum class class;

        read_code(insn, code);
        class = class_of(code);
        if (class != CLASSES && held[class] < UINT8_MAX)
            held[class]++;
        if (anatomy.armed)
            watch(insn, code, followed);
    }
}

static uint64_t end_of(const struct qemu_plugin_tb *tb)
{
    const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, qemu_plugin_tb_n_insns(tb) - 1);

    return qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);
}

static void describe(struct block *one, const struct qemu_plugin_tb *tb)
{
    one->end = end_of(tb);
    one->followed = one->pc >= anatomy.floor;
    for (unsigned i = 0; i < anatomy.known; i++)
        if (anatomy.places[i].address == one->pc) {
            one->entry = anatomy.places[i].entry;
            one->boundary = anatomy.places[i].entry == NO_ENTRY;
        }
}

/* The block of that code; the kernel patches its own code, so that one address may hold several. */
static struct block *block_of(const struct qemu_plugin_tb *tb, const uint8_t *held)
{
    uint64_t pc = qemu_plugin_tb_vaddr(tb), instructions = qemu_plugin_tb_n_insns(tb);
    unsigned bucket = (unsigned)((pc ^ pc >> 18 ^ instructions << 7) % BUCKETS);
    struct block *one;

    for (one = blocks[bucket]; one; one = one->next)
        if (one->pc == pc && one->instructions == instructions && !memcmp(one->held, held, CLASSES))
            return one;
    one = must_calloc(1, sizeof(*one));
    one->pc = pc;
    one->instructions = instructions;
    memcpy(one->held, held, CLASSES);
    describe(one, tb);
    one->next = blocks[bucket];
    blocks[bucket] = one;
    return one;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    uint64_t pc = qemu_plugin_tb_vaddr(tb);
    uint8_t held[CLASSES] = {0};

    (void)id;
    if (pc >= anatomy.marks && pc < anatomy.marks + 16 * MARKED) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, marked, 0, (void *)(uintptr_t)((pc - anatomy.marks) / 16));
        return;
    }
    if (anatomy.tree && !anatomy.armed)
        return;
    classify(tb, held, pc >= anatomy.floor);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, anatomy.armed ? executed_and_followed : executed, 0, block_of(tb, held));
}

static void close_file(FILE *file)
{
    if (file)
        fclose(file);
}

static void ended(plugin_id id, void *data)
{
    (void)id;
    (void)data;
    flush();
    fclose(out);
    close_file(anatomy.tree);
    close_file(anatomy.epochs);
}

static void read_word(const char *word)
{
    if (!strncmp(word, "out=", 4))
        out = fopen(word + 4, "w");
    else if (!strncmp(word, "tree=", 5))
        anatomy.tree = fopen(word + 5, "w");
    else if (!strncmp(word, "epochs=", 7))
        anatomy.epochs = fopen(word + 7, "w");
    else if (!strncmp(word, "marks=", 6))
        anatomy.marks = strtoull(word + 6, NULL, 0);
    else if (!strncmp(word, "floor=", 6))
        anatomy.floor = strtoull(word + 6, NULL, 0);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    own = id;
    for (int i = 0; i < argc; i++)
        read_word(argv[i]);
    if (!out || !anatomy.tree != !anatomy.epochs)
        return -1;
    if (anatomy.tree) {
        tree_open(anatomy.tree);
        footprint_open(anatomy.epochs);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
