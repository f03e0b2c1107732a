/* Prints where this version of CPython has the fields that frames are read from. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>

#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"

#define FIELD(type, field) printf("%zu ", offsetof(type, field))

int main(void) {
    FIELD(_PyRuntimeState, interpreters.head);
    FIELD(PyInterpreterState, next);
    FIELD(PyInterpreterState, threads.head);
    FIELD(PyThreadState, next);
    FIELD(PyThreadState, native_thread_id);
    FIELD(PyThreadState, cframe);
    FIELD(_PyCFrame, current_frame);
    FIELD(_PyCFrame, previous);
    FIELD(_PyInterpreterFrame, f_code);
    FIELD(_PyInterpreterFrame, previous);
    FIELD(_PyInterpreterFrame, prev_instr);
    FIELD(_PyInterpreterFrame, owner);
    FIELD(PyCodeObject, co_filename);
    FIELD(PyCodeObject, co_qualname);
    FIELD(PyCodeObject, co_linetable);
    FIELD(PyCodeObject, co_firstlineno);
    FIELD(PyCodeObject, co_code_adaptive);
    FIELD(PyASCIIObject, state);
    printf("%zu %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
    return 0;
}
