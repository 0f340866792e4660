/*
 * The footprint of an I/O: what one epoch executes and touches, from one call of the boundary (where an I/O begins) to
 * the next.
 *
 * A line of the file is an epoch: "phase", then what followed code did, then what all code did (enum measure, in its
 * order). A line of cache is 64 bytes of virtual addresses, a page 4 KiB; an access across two lines touches both. Code
 * counts by whole blocks.
 */
#include "plugin.h"

#define LINE 6
#define PAGE 12
#define ROOM (1u << 16)
#define FULL (ROOM / 2)

enum measure { INSTRUCTIONS, LOADS, STORES, DATA_LINES, WRITTEN_LINES, DATA_PAGES, CODE_LINES, CODE_PAGES, HELD };
enum scope { FOLLOWED, ALL, SCOPES };
enum kind { DATA, DATA_PAGE, CODE, CODE_PAGE };
enum { WRITTEN = SCOPES }; /* how far the bits of what was written lie above those of what was touched */

/* What this epoch has touched; an entry of another epoch is as good as none. */
struct touched {
    uint64_t key, epoch;
    unsigned bits;
};

static FILE *file;
static struct touched touched[ROOM];
static uint64_t epoch, measures[SCOPES][HELD + CLASSES];
static unsigned used;
static int open_epoch;

/* Of ``bits`` those that the place did not have in this epoch. */
static unsigned touch(enum kind kind, uint64_t place, unsigned bits)
{
    uint64_t key = place << 2 | kind;
    unsigned at = (unsigned)(key * 0x9e3779b97f4a7c15u >> 48) % ROOM;
    unsigned new;

    while (touched[at].epoch == epoch && touched[at].key != key)
        at = (at + 1) % ROOM;
    if (touched[at].epoch != epoch) {
        if (used == FULL) /* far more than any I/O: start-up or an idle second */
            return 0;
        used++;
        touched[at] = (struct touched){key, epoch, 0};
    }
    new = bits & ~touched[at].bits;
    touched[at].bits |= bits;
    return new;
}

static void count(enum measure measure, unsigned bits)
{
    for (unsigned scope = 0; scope < SCOPES; scope++)
        measures[scope][measure] += bits >> scope & 1;
}

static unsigned scopes_of(int followed)
{
    return followed ? 1u << FOLLOWED | 1u << ALL : 1u << ALL;
}

static void touch_data(uint64_t line, unsigned scopes, _Bool store)
{
    unsigned new = touch(DATA, line, store ? scopes | scopes << WRITTEN : scopes);

    if (!new)
        return;
    count(DATA_LINES, new);
    count(WRITTEN_LINES, new >> WRITTEN);
    count(DATA_PAGES, touch(DATA_PAGE, line >> (PAGE - LINE), scopes));
}

static void accessed(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    unsigned scopes = (unsigned)(uintptr_t)data;
    uint64_t last = address + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) - 1;
    _Bool store = qemu_plugin_mem_is_store(info);

    (void)cpu;
    if (!open_epoch)
        return;
    count(store ? STORES : LOADS, scopes);
    touch_data(address >> LINE, scopes, store);
    if (last >> LINE != address >> LINE)
        touch_data(last >> LINE, scopes, store);
}

void footprint_watch(struct qemu_plugin_insn *insn, int followed)
{
    qemu_plugin_register_vcpu_mem_cb(insn, accessed, 0, READS_AND_WRITES, (void *)(uintptr_t)scopes_of(followed));
}

static void touch_code(struct block *block, unsigned scopes)
{
    block->epoch = epoch;
    for (uint64_t line = block->pc >> LINE; line <= (block->end - 1) >> LINE; line++) {
        count(CODE_LINES, touch(CODE, line, scopes));
        count(CODE_PAGES, touch(CODE_PAGE, line >> (PAGE - LINE), scopes));
    }
}

static void write_epoch(unsigned phase)
{
    fprintf(file, "%u", phase);
    for (unsigned scope = 0; scope < SCOPES; scope++)
        for (unsigned measure = 0; measure < HELD + CLASSES; measure++)
            fprintf(file, " %" PRIu64, measures[scope][measure]);
    fputc('\n', file);
}

static void begin_epoch(unsigned phase)
{
    if (open_epoch)
        write_epoch(phase);
    memset(measures, 0, sizeof(measures));
    open_epoch = 1;
    used = 0;
    epoch++;
}

void footprint_block(struct block *block, unsigned phase)
{
    unsigned scopes = scopes_of(block->followed);

    if (block->boundary)
        begin_epoch(phase);
    if (!open_epoch)
        return;
    for (unsigned scope = block->followed ? FOLLOWED : ALL; scope < SCOPES; scope++) {
        measures[scope][INSTRUCTIONS] += block->instructions;
        for (unsigned class = 0; class < CLASSES; class++)
            measures[scope][HELD + class] += block->held[class];
    }
    if (block->epoch != epoch)
        touch_code(block, scopes);
}

void footprint_flush(void)
{
    open_epoch = 0;
}

void footprint_open(FILE *given)
{
    file = given;
}
