/*
 * The tree of calls: who executed a block, through which calls.
 *
 * A stack of the guest has a shadow, found by its 16 KiB (THREAD_SIZE of Linux on x86-64): a CALL puts a frame on it
 * with the address of its return address, a RET takes the frames at and below the address that it reads. Both addresses
 * come from the memory operand, since plugins cannot read registers in qemu 7. A context switch (__switch_to_asm) loads
 * another stack pointer; the next RET reads from that stack, whose own frames say who called there. An interrupt has a
 * root of its own; an exception belongs to whom it happened to.
 *
 * Lines of the file: "b block pc instructions classes...", "n node parent site entry", "c phase node block executions",
 * "r phase returns orphans" (orphans: returns to no frame).
 */
#include "plugin.h"

#define REGION 14 /* bits of a stack's size */
#define DEPTH 256
#define STACKS 4096u
#define CHILDREN (1u << 16)
#define CELLS (1u << 18)
#define NESTED 64

enum root { USER = 1, KERNEL, INTERRUPTS, FIRST };

struct node {
    uint64_t site, entry;
    uint32_t parent, next;
    int written;
};

struct frame {
    uint64_t sp; /* where the return address lies */
    uint32_t parent, node;
};

struct stack {
    uint64_t region;
    struct stack *next;
    unsigned depth;
    struct frame frames[DEPTH];
};

struct counted {
    struct block *block;
    uint64_t executions;
    struct counted *next, *newer;
    uint32_t node;
};

struct watched {
    uint64_t pc;
    enum step step;
};

/* A call whose target is not known yet: the next block is. */
struct pending {
    struct frame *frame;
    uint64_t site;
};

static FILE *file;
static struct node *nodes;
static uint32_t number_of_nodes, room_for_nodes, children[CHILDREN];
static struct stack *stacks[STACKS];
static struct counted *cells[CELLS], *oldest, *newest;
static uint32_t number_of_blocks;
static uint32_t current = KERNEL;
static struct pending pending;
static const struct watched *expected;
static uint64_t returns, orphans;

static struct interrupted {
    uint32_t node;
    struct pending pending;
} interrupted[NESTED];
static unsigned nested;

static uint32_t new_node(uint32_t parent, uint64_t site, uint64_t entry)
{
    if (number_of_nodes == room_for_nodes) {
        room_for_nodes = room_for_nodes ? 2 * room_for_nodes : 4096;
        nodes = realloc(nodes, room_for_nodes * sizeof(*nodes));
        if (!nodes)
            abort();
    }
    nodes[number_of_nodes] = (struct node){site, entry, parent, 0, 0};
    return number_of_nodes++;
}

static uint32_t child_of(uint32_t parent, uint64_t site, uint64_t entry)
{
    uint64_t mixed = (site * 31 + entry) * 0x9e3779b97f4a7c15u + parent * 0x85ebca6bu;
    uint32_t *bucket = &children[mixed >> 40 & (CHILDREN - 1)];
    uint32_t one;

    for (one = *bucket; one; one = nodes[one].next)
        if (nodes[one].parent == parent && nodes[one].site == site && nodes[one].entry == entry)
            return one;
    one = new_node(parent, site, entry);
    nodes[one].next = *bucket;
    *bucket = one;
    return one;
}

static struct stack *stack_of(uint64_t sp)
{
    uint64_t region = sp >> REGION;
    struct stack **bucket = &stacks[region % STACKS], *one;

    for (one = *bucket; one; one = one->next)
        if (one->region == region)
            return one;
    one = must_calloc(1, sizeof(*one));
    one->region = region;
    one->next = *bucket;
    *bucket = one;
    return one;
}

/* Frames at lower addresses, whose functions were left without a return. */
static void drop(struct stack *stack, uint64_t sp)
{
    while (stack->depth && stack->frames[stack->depth - 1].sp < sp)
        stack->depth--;
}

static void called(uint64_t sp, uint64_t site)
{
    struct stack *stack = stack_of(sp);
    struct frame *frame;

    drop(stack, sp + 1);
    if (stack->depth == DEPTH)
        return;
    frame = &stack->frames[stack->depth++];
    *frame = (struct frame){sp, current, current};
    pending = (struct pending){frame, site};
}

static void returned(uint64_t sp)
{
    struct stack *stack = stack_of(sp);
    const struct frame *top;

    drop(stack, sp);
    returns++;
    pending.frame = NULL;
    top = stack->depth ? &stack->frames[stack->depth - 1] : NULL;
    if (top && top->sp == sp) {
        current = top->parent;
        stack->depth--;
        return;
    }
    orphans++;
    current = top ? top->node : KERNEL;
}

/* Callbacks of a block's last instruction stay armed in qemu 7.2, and what comes next calls them with addresses of its
 * own: only an access after its own instruction is one. */
static void stepped(unsigned cpu, void *data)
{
    const struct watched *one = data;

    (void)cpu;
    expected = one;
    if (one->step == INTERRUPT_RETURN && nested) {
        nested--;
        current = interrupted[nested].node;
        pending = interrupted[nested].pending;
    }
}

static void accessed(unsigned cpu, uint32_t info, uint64_t address, void *data)
{
    const struct watched *one = data;
    _Bool store = qemu_plugin_mem_is_store(info);

    (void)cpu;
    if (expected != one || store != (one->step == CALL)) /* the target of a call may be in memory */
        return;
    expected = NULL;
    if (store)
        called(address, one->pc);
    else
        returned(address);
}

void tree_watch(struct qemu_plugin_insn *insn, enum step step)
{
    struct watched *one = must_calloc(1, sizeof(*one));

    one->pc = qemu_plugin_insn_vaddr(insn);
    one->step = step;
    qemu_plugin_register_vcpu_insn_exec_cb(insn, stepped, 0, one);
    if (step != INTERRUPT_RETURN)
        qemu_plugin_register_vcpu_mem_cb(insn, accessed, 0, READS_AND_WRITES, one);
}

static void enter(const struct block *block)
{
    if (nested == NESTED)
        nested = 0;
    interrupted[nested++] = (struct interrupted){current, pending};
    pending.frame = NULL;
    if (block->entry == INTERRUPT)
        current = INTERRUPTS;
    else if (current == USER)
        current = KERNEL;
}

static struct counted *counted_at(struct block *block)
{
    uint64_t mixed = (block->pc + 8191 * block->instructions) * 0x9e3779b97f4a7c15u + current * 0x85ebca6b2545f491u;
    struct counted **bucket = &cells[mixed >> 40 & (CELLS - 1)], *one;

    for (one = *bucket; one; one = one->next)
        if (one->block == block && one->node == current)
            return one;
    one = must_calloc(1, sizeof(*one));
    one->block = block;
    one->node = current;
    one->next = *bucket;
    *bucket = one;
    if (newest)
        newest->newer = one;
    else
        oldest = one;
    newest = one;
    return one;
}

static void locate(const struct block *block)
{
    if (!block->followed) {
        current = USER;
        pending.frame = NULL;
        nested = 0;
    } else if (block->entry) {
        enter(block);
    } else if (pending.frame) {
        current = child_of(pending.frame->parent, pending.site, block->pc);
        pending.frame->node = current;
        pending.frame = NULL;
    } else if (current == USER) {
        current = KERNEL;
    }
}

void tree_block(struct block *block)
{
    locate(block);
    if (!block->counted || block->node != current) {
        block->counted = counted_at(block);
        block->node = current;
    }
    block->counted->executions++;
}

void tree_forget(void)
{
    pending.frame = NULL;
}

static void write_node(uint32_t one)
{
    if (one < FIRST || nodes[one].written)
        return;
    write_node(nodes[one].parent);
    nodes[one].written = 1;
    fprintf(file, "n %u %u %" PRIx64 " %" PRIx64 "\n", one, nodes[one].parent, nodes[one].site, nodes[one].entry);
}

static void write_block(struct block *block)
{
    if (block->number)
        return;
    block->number = ++number_of_blocks;
    fprintf(file, "b %u %" PRIx64 " %" PRIu64, block->number, block->pc, block->instructions);
    for (unsigned class = 0; class < CLASSES; class++)
        fprintf(file, " %u", block->held[class]);
    fputc('\n', file);
}

void tree_flush(unsigned phase)
{
    for (struct counted *one = oldest; one; one = one->newer) {
        if (phase && one->executions) {
            write_node(one->node);
            write_block(one->block);
            fprintf(file, "c %u %u %u %" PRIu64 "\n", phase, one->node, one->block->number, one->executions);
        }
        one->executions = 0;
    }
    if (phase)
        fprintf(file, "r %u %" PRIu64 " %" PRIu64 "\n", phase, returns, orphans);
    returns = orphans = 0;
}

void tree_open(FILE *given)
{
    file = given;
    for (unsigned root = 0; root < FIRST; root++)
        new_node(0, 0, 0);
}
