/*
 * Follows which CPU holds each cache line of the guest, and counts the lines that move between CPUs (MESI, one cache a
 * CPU, of any size: a line leaves it only when another CPU writes to it).
 *
 * The guest announces with its addresses (marks.c): N < IO begins phase N and N = 0 ends it, IO begins an I/O of the CPU
 * that executes it, AWAKE arms the plugin and ASLEEP ends the last I/O of a CPU. What is between two I/Os of a CPU counts
 * for the first of them. Until it is armed for the first time the guest runs without a callback at its accesses.
 *
 * SELF + n says that CPU n executes it, which qemu must say too (qemu 10.0 passes a wrong number under thread=single).
 *
 * At the end of a phase its counts go to the file given as out=FILE, whose lines are described at write_phase; marks=HEX
 * is the address of mark 0, where it is not that of marks.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu.h"

#define MARKED 1024 /* addresses, 16 bytes apart */
enum { IO = 1000, AWAKE, ASLEEP, SELF };

#define CPUS 8
#define BUCKETS (1u << 18)
#define LINE 64
#define PLACES 48 /* instructions that are kept of a line that several CPUs touch */
#define PROGRESS 256 /* I/Os after which the file grows, so that a guest that hangs is told from one that is slow */
#define MOST 4096 /* lines of an I/O from which on they are counted together */

__attribute__((visibility("default"))) int qemu_plugin_version = API;

/* An instruction that accesses memory; per_cpu is the address it holds, where that is relative to a CPU's own area. */
struct place {
    uint64_t pc;
    int64_t per_cpu;
    struct place *next;
};

struct toucher {
    const struct place *place;
    unsigned count;
    uint8_t store, cpu;
};

struct line {
    uint64_t physical, address; /* of its first byte: a guest's physical one, and a virtual one */
    uint8_t holders;            /* CPUs that have a valid copy */
    uint8_t known;              /* CPUs that ever had one */
    int8_t writer;              /* whose copy is the only new one, or -1 */
    uint8_t pending;            /* CPUs that took it over and have not touched what the other wrote */
    uint64_t foreign[CPUS];     /* bytes that others wrote since this CPU lost it, or took it over */
    uint64_t ahead[CPUS];       /* bytes that others wrote since this CPU lost it */
    uint64_t read[CPUS], written[CPUS]; /* in the phase: bytes */
    uint64_t moved, invalidated, shared, ios, last_io[CPUS];
    unsigned touchers, left_out;
    struct toucher *touched;
    struct line *next, *counted; /* in its bucket; among those that the phase counted */
};

static struct line *lines[BUCKETS], *counted;
static struct place *places[BUCKETS];
static uint64_t marks = UINT64_C(0x7e000000);
static uint64_t io[CPUS], moves[CPUS], histogram[MOST + 1], base[CPUS], ios;
static uint8_t in_io[CPUS];
static unsigned phase;
static int armed, hooked;
static plugin_id self;
static FILE *out;

static void *zeroed(size_t size)
{
    void *made = calloc(1, size);

    if (!made)
        abort();
    return made;
}

static struct line *line_of(uint64_t physical, uint64_t address)
{
    struct line **bucket = &lines[(physical / LINE ^ physical >> 24) % BUCKETS], *one;

    for (one = *bucket; one; one = one->next)
        if (one->physical == physical)
            return one;
    one = zeroed(sizeof(*one));
    one->physical = physical;
    one->address = address;
    one->writer = -1;
    one->next = *bucket;
    return *bucket = one;
}

static void touched_by(struct line *line, const struct place *place, int store, unsigned cpu)
{
    for (unsigned i = 0; i < line->touchers; i++) {
        struct toucher *one = &line->touched[i];

        if (one->place == place && one->store == store && one->cpu == cpu) {
            one->count++;
            return;
        }
    }
    if (!line->touched)
        line->touched = zeroed(PLACES * sizeof(*line->touched));
    if (line->touchers < PLACES)
        line->touched[line->touchers++] = (struct toucher){place, 1, (uint8_t)store, (uint8_t)cpu};
    else
        line->left_out++;
}

/* The CPU takes a line over that another has written: it moves. */
static void move(struct line *line, unsigned cpu)
{
    line->foreign[cpu] = line->ahead[cpu];
    if (!in_io[cpu])
        return;
    if (!line->moved && !line->invalidated) {
        line->counted = counted;
        counted = line;
    }
    line->moved++;
    line->pending |= (uint8_t)(1u << cpu);
    moves[cpu]++;
    if (line->last_io[cpu] != io[cpu]) {
        line->last_io[cpu] = io[cpu];
        line->ios++;
    }
}

static void access_line(uint64_t physical, uint64_t address, uint64_t bytes, int store, unsigned cpu,
                        const struct place *place)
{
    struct line *line = line_of(physical, address);
    uint8_t own = (uint8_t)(1u << cpu);

    if (!(line->holders & own)) {
        line->foreign[cpu] = 0;
        line->pending &= (uint8_t)~own;
        if (line->writer >= 0)
            move(line, cpu);
        line->ahead[cpu] = 0;
        line->writer = -1;
        line->holders |= own;
        line->known |= own;
    }
    if (line->pending & own && line->foreign[cpu] & bytes) {
        line->pending &= (uint8_t)~own;
        line->shared++;
    }
    if (store) {
        if (line->holders & ~own && in_io[cpu]) {
            if (!line->moved && !line->invalidated) {
                line->counted = counted;
                counted = line;
            }
            line->invalidated++;
        }
        line->holders = own;
        line->writer = (int8_t)cpu;
        for (unsigned other = 0; other < CPUS; other++)
            if (other != cpu)
                line->ahead[other] |= bytes;
    }
    if (in_io[cpu] && line->known & ~own) {
        *(store ? &line->written[cpu] : &line->read[cpu]) |= bytes;
        touched_by(line, place, store, cpu);
    }
}

static void accessed(unsigned cpu, meminfo info, uint64_t address, void *data)
{
    const struct place *place = data;
    struct qemu_plugin_hwaddr *where;
    uint64_t physical;
    unsigned size = 1u << qemu_plugin_mem_size_shift(info), offset;
    int store = qemu_plugin_mem_is_store(info);

    if (!armed || cpu >= CPUS)
        return;
    where = qemu_plugin_get_hwaddr(info, address);
    if (!where || qemu_plugin_hwaddr_is_io(where))
        return;
    if (place->per_cpu && address >> 63)
        base[cpu] = address - (uint64_t)place->per_cpu;
    physical = qemu_plugin_hwaddr_phys_addr(where);
    offset = physical % LINE;
    if (size > LINE - offset) { /* what lies in the next line is counted there, if that is in the same page */
        if ((physical & 4095) + size <= 4096)
            access_line(physical - offset + LINE, address - offset + LINE, ~UINT64_C(0) >> (2 * LINE - offset - size),
                        store, cpu, place);
        size = LINE - offset;
    }
    access_line(physical - offset, address - offset, (size == LINE ? ~UINT64_C(0) : (UINT64_C(1) << size) - 1) << offset,
                store, cpu, place);
}

static void forget_phase(void)
{
    for (unsigned bucket = 0; bucket < BUCKETS; bucket++)
        for (struct line *one = lines[bucket]; one; one = one->next) {
            one->moved = one->invalidated = one->shared = one->ios = 0;
            memset(one->last_io, 0, sizeof(one->last_io));
            memset(one->read, 0, sizeof(one->read));
            memset(one->written, 0, sizeof(one->written));
            one->pending = 0;
            one->touchers = one->left_out = 0;
        }
    memset(histogram, 0, sizeof(histogram));
    memset(io, 0, sizeof(io));
    counted = NULL;
    ios = 0;
}

/*
 * going N                  I/Os of the phase so far
 * phase N I/Os
 * base CPU ADDRESS         where the CPU's own area begins, less what its symbols begin with
 * ios MOVES COUNT          so many I/Os moved so many lines
 * line ADDRESS PHYSICAL MOVED INVALIDATED SHARED IOS LEFT_OUT
 *                          SHARED: of those that moved, in which a CPU touched what another had written
 * bytes CPU READ WRITTEN   of the line above: a bit a byte
 * place PC CPU r|w COUNT   an instruction that touched the line above
 */
static void write_line(const struct line *line)
{
    fprintf(out, "line %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", line->address,
            line->physical, line->moved, line->invalidated, line->shared, line->ios, line->left_out);
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        if (line->read[cpu] | line->written[cpu])
            fprintf(out, "bytes %u %" PRIx64 " %" PRIx64 "\n", cpu, line->read[cpu], line->written[cpu]);
    for (unsigned i = 0; i < line->touchers; i++)
        fprintf(out, "place %" PRIx64 " %u %c %u\n", line->touched[i].place->pc, line->touched[i].cpu,
                line->touched[i].store ? 'w' : 'r', line->touched[i].count);
}

static void write_phase(void)
{
    fprintf(out, "phase %u %" PRIu64 "\n", phase, ios);
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        if (base[cpu])
            fprintf(out, "base %u %" PRIx64 "\n", cpu, base[cpu]);
    for (unsigned number = 0; number <= MOST; number++)
        if (histogram[number])
            fprintf(out, "ios %u %" PRIu64 "\n", number, histogram[number]);
    for (const struct line *one = counted; one; one = one->counted)
        write_line(one);
    fflush(out);
}

static void end_io(unsigned cpu)
{
    if (in_io[cpu]) {
        histogram[moves[cpu] < MOST ? moves[cpu] : MOST]++;
        if (++ios % PROGRESS == 0) {
            fprintf(out, "going %" PRIu64 "\n", ios);
            fflush(out);
        }
    }
    moves[cpu] = 0;
    in_io[cpu] = 0;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb);

static void again(plugin_id id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
}

/*
 * From now on the guest's code is translated with callbacks at its accesses. That is never undone: qemu 7.2 may go on to
 * call the callbacks of a CPU's last instruction after their block was thrown away, and ends with an assertion.
 */
static void hook(void)
{
    armed = 1;
    if (!hooked) {
        hooked = 1;
        qemu_plugin_reset(self, again);
    }
}

static void marked(unsigned cpu, void *data)
{
    unsigned number = (unsigned)(uintptr_t)data;

    if (cpu >= CPUS)
        return;
    if (number == AWAKE) {
        hook();
    } else if (number == IO || number == ASLEEP) {
        end_io(cpu);
        in_io[cpu] = number == IO && armed;
        io[cpu]++;
    } else if (number >= SELF) {
        fprintf(out, "self %u %u\n", number - SELF, cpu);
    } else {
        if (phase)
            write_phase();
        forget_phase();
        phase = number;
        if (!phase)
            armed = 0;
    }
}

static int is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0x65 || (byte & 0xf0) == 0x40;
}

/* What `mov %gs:ADDRESS, REGISTER` holds as ADDRESS, with the bases of CPUs in gs; 0 for other instructions. */
static int64_t per_cpu_address(const uint8_t *code, size_t size, uint64_t pc)
{
    size_t at = 0;
    int32_t held;
    int own = 0;

    for (; at < size && is_prefix(code[at]); at++)
        own |= code[at] == 0x65;
    if (!own || at >= size || code[at] != 0x8b)
        return 0;
    if (size == at + 6 && (code[at + 1] & 0xc7) == 0x05) { /* relative to the next instruction */
        memcpy(&held, code + at + 2, sizeof(held));
        return held + (int64_t)(pc + size);
    }
    if (size == at + 7 && (code[at + 1] & 0xc7) == 0x04 && code[at + 2] == 0x25) {
        memcpy(&held, code + at + 3, sizeof(held));
        return held;
    }
    return 0;
}

static struct place *place_of(const struct qemu_plugin_insn *insn)
{
    uint64_t pc = qemu_plugin_insn_vaddr(insn);
    struct place **bucket = &places[(pc ^ pc >> 18) % BUCKETS], *one;
    uint8_t code[16] = {0};
    size_t size = qemu_plugin_insn_size(insn);

    for (one = *bucket; one; one = one->next)
        if (one->pc == pc)
            return one;
    if (size > 15)
        size = 15;
#if API < 3
    memcpy(code, qemu_plugin_insn_data(insn), size);
#else
    qemu_plugin_insn_data(insn, code, size);
#endif
    one = zeroed(sizeof(*one));
    one->pc = pc;
    one->per_cpu = per_cpu_address(code, size, pc);
    one->next = *bucket;
    return *bucket = one;
}

/* The kernel, and the program that has the marks (linked near them): other programs only make what is measured. */
static int is_followed(uint64_t pc)
{
    return pc >> 63 || (pc ^ marks) >> 26 == 0;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    uint64_t pc = qemu_plugin_tb_vaddr(tb);

    (void)id;
    if (pc >= marks && pc < marks + 16 * MARKED) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, marked, 0, (void *)(uintptr_t)((pc - marks) / 16));
        return;
    }
    if (!hooked || !is_followed(pc))
        return;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        qemu_plugin_register_vcpu_mem_cb(insn, accessed, 0, READS_AND_WRITES, place_of(insn));
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    self = id;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4))
            out = fopen(argv[i] + 4, "w");
        if (!strncmp(argv[i], "marks=", 6))
            marks = strtoull(argv[i] + 6, NULL, 16);
    }
    if (!out)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
