/* Prints where this version of CPython has the fields that frames are read from. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#if PY_MINOR_VERSION >= 9
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#else
#include "internal/pycore_pystate.h"
#endif
#if PY_MINOR_VERSION >= 11
#include "internal/pycore_code.h"
#include "internal/pycore_frame.h"
#endif
#include <stddef.h>
#include <stdio.h>

#define FIELD(name, type, field) printf(#name " %zu\n", offsetof(type, field))

int main(void) {
    FIELD(interpreters_head, _PyRuntimeState, interpreters.head);
    FIELD(interpreter_next, PyInterpreterState, next);
    FIELD(thread_next, PyThreadState, next);
    FIELD(thread_id, PyThreadState, thread_id);
#if PY_MINOR_VERSION >= 11
    FIELD(threads_head, PyInterpreterState, threads.head);
    FIELD(native_thread_id, PyThreadState, native_thread_id);
    FIELD(frame_previous, _PyInterpreterFrame, previous);
    FIELD(code_qualname, PyCodeObject, co_qualname);
    FIELD(code_linetable, PyCodeObject, co_linetable);
    FIELD(code_bytes, PyCodeObject, co_code_adaptive);
#if PY_MINOR_VERSION >= 13
    FIELD(current_frame, PyThreadState, current_frame);
    FIELD(frame_code, _PyInterpreterFrame, f_executable);
    FIELD(frame_instruction, _PyInterpreterFrame, instr_ptr);
#else
    FIELD(cframe, PyThreadState, cframe);
    FIELD(cframe_current, _PyCFrame, current_frame);
    FIELD(frame_code, _PyInterpreterFrame, f_code);
    FIELD(frame_instruction, _PyInterpreterFrame, prev_instr);
#endif
#if PY_MINOR_VERSION >= 12
    FIELD(owner, _PyInterpreterFrame, owner);
#else
    FIELD(is_entry, _PyInterpreterFrame, is_entry);
#endif
#else
    FIELD(threads_head, PyInterpreterState, tstate_head);
    FIELD(current_frame, PyThreadState, frame);
    FIELD(frame_previous, PyFrameObject, f_back);
    FIELD(frame_code, PyFrameObject, f_code);
    FIELD(frame_instruction, PyFrameObject, f_lasti);
#if PY_MINOR_VERSION == 10
    FIELD(code_linetable, PyCodeObject, co_linetable);
#else
    FIELD(code_linetable, PyCodeObject, co_lnotab);
#endif
    FIELD(code_bytes, PyCodeObject, co_code);
#endif
    FIELD(code_name, PyCodeObject, co_name);
    FIELD(code_filename, PyCodeObject, co_filename);
    FIELD(code_firstlineno, PyCodeObject, co_firstlineno);
    FIELD(object_type, PyObject, ob_type);
    FIELD(object_size, PyVarObject, ob_size);
    FIELD(bytes_data, PyBytesObject, ob_sval);
    FIELD(unicode_length, PyASCIIObject, length);
    FIELD(unicode_state, PyASCIIObject, state);
    printf("ascii_data %zu\n", sizeof(PyASCIIObject));
    printf("compact_data %zu\n", sizeof(PyCompactUnicodeObject));
    return 0;
}
