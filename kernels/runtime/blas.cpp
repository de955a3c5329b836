/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "runtime/blas.h"

#include <dlfcn.h>

#include <string>

namespace farfield
{
namespace
{

[[noreturn]] void failToLoad()
{
    // The reason names the library or the function
    throw Error(ErrorCode::DeviceFailure,
                std::string("cuBLAS cannot be loaded: ") + dlerror() + ".");
}

template<class Function>
void find(void* library, const char* name, Function* function)
{
    *function = reinterpret_cast<Function>(dlsym(library, name));
    if (*function == nullptr)
    {
        failToLoad();
    }
}

CublasFunctions load()
{
    // The version that the headers are of; it stays loaded, as what a program is linked with.
    const std::string name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
    void* library          = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr)
    {
        failToLoad();
    }
    CublasFunctions result = {};
    find(library, "cublasCreate_v2", &result.create);
    find(library, "cublasDestroy_v2", &result.destroy);
    find(library, "cublasGetStatusString", &result.getStatusString);
    find(library, "cublasSetStream_v2", &result.setStream);
    find(library, "cublasSetWorkspace_v2", &result.setWorkspace);
    find(library, "cublasGemmStridedBatchedEx", &result.gemmStridedBatchedEx);
    return result;
}

} // namespace

const CublasFunctions& cublas()
{
    static const CublasFunctions c_functions = load();
    return c_functions;
}

} // namespace farfield
