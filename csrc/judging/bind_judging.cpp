// Binds statistics, stopping rule and compare. Converts and releases the GIL, nothing else.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <stdexcept>
#include <string>

#include "judging/compare.hpp"
#include "judging/statistics.hpp"
#include "judging/stopping.hpp"

namespace py = pybind11;

namespace {

using Exact = py::array_t<double, py::array::c_style | py::array::forcecast>;

template <typename T>
judging::Comparison compare_as(const py::array& seen, const Exact& exact, double scale, double largest) {
  const auto* seen_data = static_cast<const T*>(seen.data());
  const double* exact_data = exact.data();
  const auto count = static_cast<std::size_t>(exact.size());
  py::gil_scoped_release release;
  return judging::compare(seen_data, exact_data, count, largest, scale);
}

judging::Comparison compare(const py::array& seen, const Exact& exact, double scale) {
  if (seen.size() != exact.size()) {
    throw std::invalid_argument("seen " + std::to_string(seen.size()) + " elements, expected " +
                                std::to_string(exact.size()));
  }
  if (!(seen.flags() & py::array::c_style)) throw std::invalid_argument("seen a strided array, expected a contiguous one");
  const char kind = seen.dtype().kind();
  const auto bytes = seen.dtype().itemsize();
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  if (kind == 'f' && bytes == 2) return compare_as<judging::Half>(seen, exact, scale, 65504.0);
  if (kind == 'f' && bytes == 4) return compare_as<float>(seen, exact, scale, std::numeric_limits<float>::max());
  if (kind == 'f' && bytes == 8) return compare_as<double>(seen, exact, scale, kUnbounded);
  if (kind == 'i' && bytes == 1) return compare_as<std::int8_t>(seen, exact, scale, kUnbounded);
  if (kind == 'i' && bytes == 4) return compare_as<std::int32_t>(seen, exact, scale, kUnbounded);
  if (kind == 'i' && bytes == 8) return compare_as<std::int64_t>(seen, exact, scale, kUnbounded);
  if ((kind == 'u' || kind == 'b') && bytes == 1) return compare_as<std::uint8_t>(seen, exact, scale, kUnbounded);
  throw std::invalid_argument("seen an output of type " + std::string(py::str(seen.dtype())) +
                              ", expected float16, float32, float64, int8, int32, int64, uint8 or bool");
}

}  // namespace

void bind_judging(py::module_& module) {
  py::class_<judging::Interval>(module, "Interval", "An estimate with its 99 % confidence interval.")
      .def(py::init<double, double, double>(), py::arg("value"), py::arg("low"), py::arg("high"))
      .def_readonly("value", &judging::Interval::value)
      .def_readonly("low", &judging::Interval::low)
      .def_readonly("high", &judging::Interval::high);
  module.def("median", &judging::median, py::arg("values"));
  module.def("bucket_means", &judging::bucket_means, py::arg("values"), "Means of seven consecutive runs of values.");
  module.def("time_interval", &judging::time_interval, py::arg("times"),
             "Median of seven bucket means of times, with its 99 % interval.");
  module.def("paired_interval", &judging::paired_interval, py::arg("reference"), py::arg("program"),
             "Speed-up (reference over program) of times taken in pairs, with its 99 % interval.");
  module.def("round_towards_one", &judging::round_towards_one, py::arg("ratio"));

  py::enum_<judging::Stop>(module, "Stop")
      .value("CONTINUE", judging::Stop::kContinue)
      .value("TIGHT", judging::Stop::kTight)
      .value("OUT_OF_TIME", judging::Stop::kOutOfTime);
  py::class_<judging::StoppingRule>(module, "StoppingRule")
      .def(py::init([](double width, double budget_s, std::size_t min_pairs) {
             return judging::StoppingRule{width, budget_s, min_pairs};
           }),
           py::arg("width"), py::arg("budget_s"), py::arg("min_pairs"))
      .def_readonly("width", &judging::StoppingRule::width)
      .def_readonly("budget_s", &judging::StoppingRule::budget_s)
      .def_readonly("min_pairs", &judging::StoppingRule::min_pairs);
  module.def("should_stop", &judging::should_stop, py::arg("rule"), py::arg("pairs"), py::arg("interval"),
             py::arg("spent_s"));

  py::class_<judging::Comparison>(module, "Comparison", "Errors of an output against the float64 oracle.")
      .def_readonly("norm_error", &judging::Comparison::norm_error)
      .def_readonly("element_error", &judging::Comparison::element_error)
      .def_readonly("scale", &judging::Comparison::scale)
      .def_readonly("alignment", &judging::Comparison::alignment)
      .def_readonly("share_off", &judging::Comparison::share_off)
      .def_readonly("mismatched", &judging::Comparison::mismatched)
      .def_readonly("worst_index", &judging::Comparison::worst_index)
      .def_readonly("worst_seen", &judging::Comparison::worst_seen)
      .def_readonly("worst_expected", &judging::Comparison::worst_expected);
  module.def("compare", &compare, py::arg("seen"), py::arg("exact"), py::arg("scale") = 0.0,
             "Errors of `seen` (float16/32/64, int8/32/64, uint8, bool; contiguous) against `exact` (float64). `scale`: "
             "of the exact values, where it is known from an earlier comparison.");
}
