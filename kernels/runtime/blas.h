/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
/*! \file
 *  \brief Matrix products of cuBLAS: a handle with a workspace of its own, errors as Error.
 *
 *  cuBLAS is loaded with the first handle. A program that is linked with cuBLAS starts 0.08 s later:
 *  the system adjusts 350 000 addresses in that library, also for a program without any product.
 */
#ifndef FARFIELD_KERNELS_RUNTIME_BLAS_H
#define FARFIELD_KERNELS_RUNTIME_BLAS_H

#include <type_traits>

#include <cublas_v2.h>

#include "runtime/device.h"

namespace farfield
{

//! The functions of cuBLAS, with the names and arguments that cuBLAS gives them.
struct CublasFunctions
{
    decltype(&::cublasCreate) create;
    decltype(&::cublasDestroy) destroy;
    decltype(&::cublasGetStatusString) getStatusString;
    decltype(&::cublasSetStream) setStream;
    decltype(&::cublasSetWorkspace) setWorkspace;
    // the type of the computation chooses one of two functions of that name
    cublasStatus_t (*gemmStridedBatchedEx)(cublasHandle_t,
                                           cublasOperation_t,
                                           cublasOperation_t,
                                           int,
                                           int,
                                           int,
                                           const void*,
                                           const void*,
                                           cudaDataType,
                                           int,
                                           long long,
                                           const void*,
                                           cudaDataType,
                                           int,
                                           long long,
                                           const void*,
                                           void*,
                                           cudaDataType,
                                           int,
                                           long long,
                                           int,
                                           cublasComputeType_t,
                                           cublasGemmAlgo_t);
};

/*! \brief Loads cuBLAS at the first call.
 *  \throws Error  DeviceFailure: the library is not there, or lacks a function */
const CublasFunctions& cublas();

//! Throws Error if a call of cuBLAS failed.
inline void check(cublasStatus_t status, const char* action)
{
    if (status == CUBLAS_STATUS_SUCCESS)
    {
        return;
    }
    const std::string text =
            std::string(action) + " failed in cuBLAS: " + cublas().getStatusString(status);
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
    {
        throw Error(ErrorCode::OutOfMemory,
                    text + ". Larger cells or a lower order need less memory.");
    }
    throw Error(ErrorCode::DeviceFailure, text + ".");
}

//! A matrix, or a batch of them at equal distances; column-major as in BLAS.
template<class T>
struct BatchedMatrix
{
    T* elements;
    int leading;      //!< distance of columns
    long long stride; //!< distance of matrices
};

//! Products C = A^T B + beta C.
class Blas
{
public:
    Blas()
    {
        check(cublas().create(&handle_), "Starting cuBLAS");
        const int major = deviceAttribute(cudaDevAttrComputeCapabilityMajor);
        // what the manual of cuBLAS recommends
        workspace_.resize(static_cast<size_t>(major >= 9 ? 32 : 4) << 20);
    }
    ~Blas() { functions_.destroy(handle_); }
    Blas(const Blas&)            = delete;
    Blas& operator=(const Blas&) = delete;

    //! Following products go to the stream; they allocate nothing, and so can be captured.
    void use(cudaStream_t stream)
    {
        check(cublas().setStream(handle_, stream), "Setting the stream");
        // setting the stream has brought back the default workspace
        check(cublas().setWorkspace(handle_, workspace_.data(), workspace_.size()),
              "Setting the workspace");
    }
    /*! \brief C (rows x columns) = A^T B + beta C for every matrix of a batch.
     *  \param[in] tf32  in single precision: tensor cores, which read 10 bits of each mantissa */
    template<class Real>
    void multiply(int rows,
                  int columns,
                  int inner,
                  const BatchedMatrix<const Real>& A,
                  const BatchedMatrix<const Real>& B,
                  Real beta,
                  const BatchedMatrix<Real>& C,
                  int batch,
                  bool tf32)
    {
        constexpr bool single       = std::is_same<Real, float>::value;
        constexpr cudaDataType type = single ? CUDA_R_32F : CUDA_R_64F;
        const Real one              = 1;
        check(cublas().gemmStridedBatchedEx(
                      handle_,
                      CUBLAS_OP_T,
                      CUBLAS_OP_N,
                      rows,
                      columns,
                      inner,
                      &one,
                      A.elements,
                      type,
                      A.leading,
                      A.stride,
                      B.elements,
                      type,
                      B.leading,
                      B.stride,
                      &beta,
                      C.elements,
                      type,
                      C.leading,
                      C.stride,
                      batch,
                      single ? (tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F)
                             : CUBLAS_COMPUTE_64F,
                      CUBLAS_GEMM_DEFAULT),
              "A matrix product");
    }

private:
    const CublasFunctions& functions_ = cublas();
    cublasHandle_t handle_            = nullptr;
    DeviceBuffer<char> workspace_;
};

} // namespace farfield

#endif
