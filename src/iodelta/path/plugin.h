/*
 * qemu's plugin interface (docs/devel/tcg-plugins.rst), declared by hand so that no headers of qemu are needed, and what
 * the parts of the plugin share.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *),
                                             int, int, void *);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern void qemu_plugin_reset(plugin_id, void (*)(plugin_id));
extern unsigned qemu_plugin_mem_size_shift(uint32_t);
extern _Bool qemu_plugin_mem_is_store(uint32_t);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
#if API < 3
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
#else
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
#endif

enum { READS_AND_WRITES = 3 }; /* qemu 7.2 forgets callbacks that ask for reads alone */

/* Instructions that cost more than others: Intel's Software Developer's Manual, volume 2, appendix A. */
enum class { LOCKED, FENCE, CLOCK, INDIRECT, STRING, CLASSES };

/* What an instruction does to the stack of calls. */
enum step { NO_STEP, CALL, RETURN, INTERRUPT_RETURN };

/* Where the kernel is entered other than by a system call. */
enum entry { NO_ENTRY, INTERRUPT, EXCEPTION };

struct block {
    uint64_t pc, instructions, executions;
    uint8_t held[CLASSES];
    struct block *next;
    uint64_t end;        /* of its code */
    uint64_t epoch;      /* that counted its code last */
    uint32_t number;     /* in the file of the tree; 0: not written yet */
    uint32_t node;       /* that executed it last, and where that counts it */
    struct counted *counted;
    enum entry entry;
    uint8_t followed;    /* its calls are part of the tree */
    uint8_t boundary;    /* an I/O begins with it */
};

/* plugin.c */
void *must_calloc(size_t number, size_t size);

/* tree.c */
void tree_open(FILE *file);
void tree_block(struct block *block);
void tree_watch(struct qemu_plugin_insn *insn, enum step step);
void tree_forget(void);
void tree_flush(unsigned phase);

/* footprint.c */
void footprint_open(FILE *file);
void footprint_block(struct block *block, unsigned phase);
void footprint_watch(struct qemu_plugin_insn *insn, int followed);
void footprint_flush(void);
