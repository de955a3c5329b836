/*
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "operators/slab_sums.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/threads.h"

namespace farfield
{
namespace
{

//! Cells by which derivatives of the kink reach beyond the Gaussian itself.
constexpr double c_reachOfDerivatives = 2;

//! What all wave vectors of a grid share.
struct SlabSpace
{
    SlabSpace(const Grid& grid, double a, double decay) :
        a(a), height(grid.scaledEdges()(2, 2)), most(mostApart(grid.H()[2][2])),
        R(height * most + c_reachOfDerivatives + decay / a), qMax(2 * a * decay),
        last(static_cast<int>(qMax * R / M_PI)), dual(grid.scaledEdges().inverse())
    {
    }
    double qz(int j) const { return M_PI * j / R; }
    //! What q_j adds to a wave vector with such a phase from cell to cell along z.
    double weight(double phase, double qz) const
    {
        const double half = 0.5 * (phase - qz * height);
        const double sine = std::sin(half);
        const double kernel =
                std::abs(sine) < 1e-12 ? 2 * most + 1 : std::sin((2 * most + 1) * half) / sine;
        return kernel * height / (2 * R);
    }

    double a, height;
    int most;
    double R, qMax;
    int last; //!< of the q_z that are not too long
    Mat3 dual;
};

//! The terms of one q_par of the cells, with all of its images, for q_z from 0 upwards.
class RowOfTerms
{
public:
    RowOfTerms(const SlabSpace& space, int degree, int strainDegree) :
        space_(space), harmonics_(degree, strainDegree), radial_(degree + 1), slope_(degree + 1),
        ofCut_(degree + 1)
    {
    }
    int fields() const { return harmonics_.size(); }
    bool isOddInZ(int field) const { return harmonics_.isOdd(field, 2); }

    /*! \brief Sums over images of q_par.
     *  \param[in]  phases  of q_par from cell to cell, along x and y
     *  \param[out] out     [last + 1][fields()] */
    void sum(const Vec3& phases, Matrix* out)
    {
        const Images x(space_, phases, 0), y(space_, phases, 1);
        out->setZero(space_.last + 1, fields());
        for (int i = x.first; i <= x.last; i++)
        {
            for (int k = y.first; k <= y.last; k++)
            {
                Vec3 q = space_.dual * (Vec3(phases[0], phases[1], 0) + 2 * M_PI * Vec3(i, k, 0));
                const double part = x.part(i) * y.part(k);
                for (int j = 0; j <= space_.last; j++)
                {
                    q[2] = space_.qz(j);
                    add(q, j, part, out->row(j).data());
                }
            }
        }
        // mirror images double even fields, and cancel the others
        for (int f = 0; f < fields(); f++)
        {
            out->col(f) *=
                    x.ofMirrored(harmonics_.isOdd(f, 0)) * y.ofMirrored(harmonics_.isOdd(f, 1));
        }
    }

private:
    //! Images along an axis of the plane that are summed: half of them where the others mirror these.
    struct Images
    {
        Images(const SlabSpace& space, const Vec3& phases, int axis)
        {
            const double reach = space.qMax / (2 * M_PI);
            const double own   = phases[axis] / (2 * M_PI);
            const auto isWhole = [](double t) { return std::abs(t - std::round(t)) < 1e-9; };
            last = static_cast<int>(std::ceil(reach * space.dual.inverse().row(axis).norm())) + 1;
            areMirrored = space.dual.isDiagonal(1e-10) && isWhole(2 * own);
            isOwn       = isWhole(own);
            first       = areMirrored ? static_cast<int>(std::ceil(-own - 1e-9)) : -last;
        }
        //! Of an image, in terms of those and their mirror images: the one in the mirror counts once.
        double part(int i) const { return areMirrored && isOwn && i == first ? 0.5 : 1; }
        double ofMirrored(bool isOdd) const { return !areMirrored ? 1 : isOdd ? 0 : 2; }

        int first, last;
        bool areMirrored;
        bool isOwn; //!< there is an image in the mirror
    };

    void add(const Vec3& q, int j, double part, double* out)
    {
        const double q2 = q.squaredNorm();
        if (q2 > space_.qMax * space_.qMax)
        {
            return;
        }
        if (q2 < 1e-20)
        {
            addZero(part, out);
            return;
        }
        const double a         = space_.a;
        const double qPar      = std::hypot(q[0], q[1]);
        const double cut       = (j % 2 ? -1 : 1) * std::exp(-qPar * space_.R);
        const double transform = part * 4 * M_PI * std::exp(-q2 / (4 * a * a)) / q2;
        double sign            = 1; // (-i)^l = i^l (-1)^l, over (2l-1)!!
        for (size_t l = 0; l < radial_.size(); l++)
        {
            radial_[l] = sign * transform * (1 - cut);
            slope_[l]  = -radial_[l] * (1 / (4 * a * a) + 1 / q2);
            ofCut_[l]  = sign * transform * cut;
            sign /= -(2 * static_cast<double>(l) + 1);
        }
        harmonics_.add(q, radial_.data(), slope_.data(), true, out);
        if (qPar > 0)
        {
            // exp(-q_par R) follows the strain: R as a length along z, q_par as a wave vector. Where
            // planes tilt, so does z: q_z R is no multiple of pi then, and a term of its sine appears
            const double ofR = qPar * space_.R;
            addCut(StrainXXminusZZ, -ofR * (1 + q[0] * q[0] / (qPar * qPar)), out);
            addCut(StrainYYminusZZ, -ofR * (1 + q[1] * q[1] / (qPar * qPar)), out);
            addCut(StrainXY, -ofR * q[0] * q[1] / (qPar * qPar), out);
            addCut(StrainXZ, -space_.R * q[0] * q[2] / qPar, out);
            addCut(StrainYZ, -space_.R * q[1] * q[2] / qPar, out);
        }
    }
    //! \param[in] derivative  of q_par R under the strain, or what has its place
    void addCut(Strain component, double derivative, double* out)
    {
        for (size_t l = 0; l < slope_.size(); l++)
        {
            slope_[l] = ofCut_[l] * derivative;
        }
        harmonics_.addStrain(component, slope_.data(), out);
    }
    void addZero(double part, double* out) const
    {
        const double R2 = part * space_.R * space_.R;
        out[0] += -2 * M_PI * R2;
        const int n        = coefficientCount(static_cast<int>(radial_.size()) - 1);
        const int strained = (fields() - n) / StrainCount;
        for (const Strain component : { StrainXXminusZZ, StrainYYminusZZ })
        {
            out[n + component * strained] += 4 * M_PI * R2; // z shrinks
        }
    }

    const SlabSpace& space_;
    StrainedHarmonics harmonics_;
    std::vector<double> radial_, slope_, ofCut_;
};

//! The wave vectors with the same components along x and y: places in the list of them.
std::vector<std::vector<int>> rowsOf(const Grid& grid, const std::vector<int>& waves)
{
    constexpr double c_digits = 1e9;
    std::map<std::pair<long long, long long>, std::vector<int>> rows;
    for (int k = 0; k < static_cast<int>(waves.size()); k++)
    {
        const Vec3 phases = grid.phases(waves[k]);
        rows[{ std::llround(phases[0] * c_digits), std::llround(phases[1] * c_digits) }].push_back(
                k);
    }
    std::vector<std::vector<int>> result;
    for (auto& row : rows)
    {
        result.push_back(std::move(row.second));
    }
    return result;
}

} // namespace

template<class Real>
void addReciprocalSpaceOfSlab(const Grid& grid,
                              double a,
                              double decay,
                              const std::vector<int>& waves,
                              int threads,
                              LatticeSums<Real>* sums)
{
    const SlabSpace space(grid, a, decay);
    const auto rows    = rowsOf(grid, waves);
    const int n        = static_cast<int>(sums->value.cols());
    const int strained = static_cast<int>(sums->strain[0].cols());
    FirstException failure;
#pragma omp parallel num_threads(threads)
    {
        std::optional<RowOfTerms> terms;
        Matrix ofRow, even, odd, added[2];
        failure.run([&] { terms.emplace(space, sums->degree, degreeOf(strained - 1)); });
        const auto addRow = [&](const std::vector<int>& row)
        {
            terms->sum(grid.phases(waves[row.front()]), &ofRow);
            even.resize(row.size(), space.last + 1);
            odd.resize(row.size(), space.last + 1);
            for (size_t k = 0; k < row.size(); k++)
            {
                const double phase = grid.phases(waves[row[k]])[2];
                for (int j = 0; j <= space.last; j++)
                {
                    // terms of -q_z are those of q_z, or minus them
                    const double up   = space.weight(phase, space.qz(j));
                    const double down = j > 0 ? space.weight(phase, -space.qz(j)) : 0;
                    even(k, j)        = up + down;
                    odd(k, j)         = up - down;
                }
            }
            added[0].noalias() = even * ofRow;
            added[1].noalias() = odd * ofRow;
            for (int f = 0; f < terms->fields(); f++)
            {
                const Matrix& of = added[terms->isOddInZ(f)];
                for (size_t k = 0; k < row.size(); k++)
                {
                    if (f < n)
                    {
                        sums->value(row[k], f) += of(k, f);
                    }
                    else
                    {
                        sums->strain[(f - n) / strained](row[k], (f - n) % strained) +=
                                static_cast<Real>(of(k, f));
                    }
                }
            }
        };
#pragma omp for schedule(dynamic)
        for (int r = 0; r < static_cast<int>(rows.size()); r++)
        {
            failure.run([&] { addRow(rows[r]); });
        }
    }
    failure.rethrow();
}

template decltype(addReciprocalSpaceOfSlab<float>) addReciprocalSpaceOfSlab<float>;
template decltype(addReciprocalSpaceOfSlab<double>) addReciprocalSpaceOfSlab<double>;

} // namespace farfield
