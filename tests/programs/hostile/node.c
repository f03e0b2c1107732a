/* A fake Node 20: the objects that prof reads, and frames of an interpreter that runs nothing. */
#include <stdint.h>

#include "fake.h"

/* Layers of functions: what prof has read of one counts for a second. */
#define LAYERS 64
#define DEPTH 64
#define NAME_OF_V8 512

#define CONSTANT(name, value) const int v8dbg_##name = value

CONSTANT(TaggedSize, 8);
CONSTANT(SmiShiftSize, 31);
CONSTANT(off_fp_context, -8);
CONSTANT(off_fp_function, -16);
CONSTANT(off_fp_bytecode_array, -32);
CONSTANT(class_Map__instance_type__uint16_t, 12);
CONSTANT(type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, 262);
CONSTANT(type_ScopeInfo__SCOPE_INFO_TYPE, 261);
CONSTANT(type_Script__SCRIPT_TYPE, 167);
CONSTANT(FirstNonstringType, 128);
CONSTANT(class_JSFunction__shared__SharedFunctionInfo, 24);
CONSTANT(class_SharedFunctionInfo__name_or_scope_info__Object, 16);
CONSTANT(class_SharedFunctionInfo__script_or_debug_info__HeapObject, 32);
CONSTANT(class_Script__source__Object, 8);
CONSTANT(class_Script__name__Object, 16);
CONSTANT(scopeinfo_idx_ncontextlocals, 2);
CONSTANT(scopeinfo_idx_first_vars, 3);
CONSTANT(class_String__length__int32_t, 12);
CONSTANT(class_SeqOneByteString__chars__char, 16);
CONSTANT(class_ConsString__first__String, 16);
CONSTANT(class_ConsString__second__String, 24);
CONSTANT(class_SlicedString__parent__String, 16);
CONSTANT(class_SlicedString__offset__SMI, 24);
CONSTANT(class_ThinString__actual__String, 16);
CONSTANT(class_ExternalString__resource__Object, 16);
CONSTANT(type_BytecodeArray__BYTECODE_ARRAY_TYPE, 191);
CONSTANT(type_Code__CODE_TYPE, 245);
CONSTANT(type_InstructionStream__INSTRUCTION_STREAM_TYPE, 252);
CONSTANT(class_InstructionStream__instruction_start__uintptr_t, 16);
CONSTANT(class_FixedArray__data__uintptr_t, 16);

/* Pointers to objects have a tag. */
#define TAGGED(object) ((uint64_t)(object) + 1)

struct map {
    uint32_t fields[3];
    uint16_t type, padding;
} __attribute__((aligned(8)));

struct string {
    uint64_t map;
    uint32_t hash, length;
    char characters[NAME_OF_V8];
} __attribute__((aligned(8)));

struct object {
    uint64_t map, words[7];
};

struct layer {
    struct object closures[DEPTH], shared[DEPTH], bytecodes[DEPTH];
    struct string names[DEPTH];
};

static struct map string_map = {.type = 8}, shared_map = {.type = 262}, other_map = {.type = 300},
                  bytecodes_map = {.type = 191};
static struct layer layers[LAYERS];
static int depth = DEPTH;

static void make(struct layer *layer, long round)
{
    for (int i = 0; i < depth; i++) {
        struct string *name = &layer->names[i];
        name->map = TAGGED(&string_map);
        name->length = NAME_OF_V8;
        name_function(name->characters, NAME_OF_V8, round, i);
        layer->bytecodes[i].map = TAGGED(&bytecodes_map);
        layer->shared[i].map = TAGGED(&shared_map);
        layer->shared[i].words[0] = TAGGED(&layer->bytecodes[i]);
        layer->shared[i].words[1] = TAGGED(name);
        layer->closures[i].map = TAGGED(&other_map);
        layer->closures[i].words[2] = TAGGED(&layer->shared[i]);
    }
}

static int more;

__attribute__((noinline)) void run(void)
{
    more = spin();
}

/* Calls itself once for each function of a layer: rdi points to the closure, which is followed by
 * the others, rsi to its bytecodes, edx is how many there are. */
void Builtins_InterpreterEntryTrampoline(uint64_t closure, uint64_t bytecodes, int left);

asm(".text\n"
    ".globl Builtins_InterpreterEntryTrampoline\n"
    ".type Builtins_InterpreterEntryTrampoline, @function\n"
    "Builtins_InterpreterEntryTrampoline:\n"
    "    push %rbp\n"
    "    mov %rsp, %rbp\n"
    "    push %rdi\n"
    "    push %rdi\n"
    "    push $0\n"
    "    push %rsi\n"
    "    add $64, %rdi\n"
    "    add $64, %rsi\n"
    "    sub $1, %edx\n"
    "    jz 1f\n"
    "    call Builtins_InterpreterEntryTrampoline\n"
    "    jmp 2f\n"
    "1:  call run\n"
    "2:  leave\n"
    "    ret\n"
    ".size Builtins_InterpreterEntryTrampoline, . - Builtins_InterpreterEntryTrampoline\n");

_Static_assert(sizeof(struct object) == 64, "object");

int main(int argc, char **argv)
{
    begin(argc, argv);
    int layer_count = LAYERS;
    if (count == FEW) {
        depth = FEW;
        layer_count = 1;
    }
    long round = 0;
    do {
        struct layer *layer = &layers[round % layer_count];
        make(layer, round++);
        Builtins_InterpreterEntryTrampoline(TAGGED(layer->closures), TAGGED(layer->bytecodes),
                                            depth);
    } while (more);
    return 0;
}
