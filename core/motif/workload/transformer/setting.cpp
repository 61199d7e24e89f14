#include "core/motif/workload/transformer/setting.hpp"

#include <algorithm>
#include <string>

#include "core/spec/fields.hpp"

namespace dryfly::motif::transformer {
namespace {

constexpr std::uint64_t half = 2, single = 4;  // bytes

bool is_second(Parameters& parameters, const std::string& name, const std::string& first, const std::string& second) {
  const std::string word = parameters.text_or(name, first);
  if (word != first && word != second) {
    throw SpecError(name + " = `" + word + "`: accepted is " + first + " or " + second);
  }
  return word == second;
}

void check_divides(const std::string& name, std::uint64_t value, const std::string& by, std::uint64_t divisor) {
  if (value % divisor == 0) return;
  throw SpecError(name + " = " + std::to_string(value) + ": accepted is a multiple of " + by + " = " +
                  std::to_string(divisor));
}

}  // namespace

Setting Setting::read(Stage& stage, Parameters& parameters) {
  Setting setting{.rates = WorkRates(stage.spec(), stage.placement().per_node(), {}, Where::gpu)};
  constexpr std::uint64_t most = 1U << 20;
  setting.model.layers = parameters.number("layers", 1, most);
  setting.model.hidden = parameters.number("hidden", 1, most);
  setting.model.heads = parameters.number("heads", 1, most);
  setting.model.sequence = parameters.number("sequence", 1, 1U << 24);
  setting.model.vocabulary = parameters.number("vocabulary", 1, 1U << 24);
  setting.micro_batch = parameters.number_or("micro_batch", 1, 1, most);
  setting.global_batch = parameters.number("global_batch", 1, 1U << 24);
  setting.tensor_ranks = static_cast<std::uint32_t>(parameters.number_or("tp", 1, 1, most));
  setting.stages = static_cast<std::uint32_t>(parameters.number_or("pp", 1, 1, most));
  setting.chunks = static_cast<std::uint32_t>(parameters.number_or("interleave", 1, 1, most));
  const std::uint64_t group = std::uint64_t{setting.tensor_ranks} * setting.stages;
  const std::uint64_t usual = std::max<std::uint64_t>(stage.ranks() / group, 1);
  setting.replicas = static_cast<std::uint32_t>(parameters.number_or("dp", usual, 1, most));
  setting.sequence_parallel = parameters.flag("sequence_parallel");
  setting.computing.recomputes = is_second(parameters, "recompute", "none", "full");
  setting.computing.flash = !is_second(parameters, "attention", "flash", "unfused");
  setting.gradients.scattered = parameters.flag("zero");
  setting.gradients.bytes = parameters.number_or("gradient", 4, 2, 4);
  setting.gradients.buckets = static_cast<std::uint32_t>(parameters.number_or("buckets", 1, 1, 256));
  setting.gradients.overlap = parameters.flag("overlap");
  setting.each_tensor = is_second(parameters, "tensor", "alone", "each");
  setting.computing.matmul_ppm = parameters.number_or("matmul_share", 1'000'000, 1, 1'000'000);
  if (is_second(parameters, "library", "rccl", "oneccl")) setting.algorithm = GpuAlgorithm::topo;
  setting.peak_per_s = static_cast<double>(stage.spec().number(fields::compute_gpu_half_per_s)) /
                       static_cast<double>(stage.placement().per_node());
  setting.launch = Duration{stage.spec().number(fields::compute_gpu_latency_ps)};
  setting.check(stage.ranks());
  return setting;
}

void Setting::check(std::uint64_t ranks) const {
  if (std::uint64_t{tensor_ranks} * stages * replicas != ranks) {
    throw SpecError("tp * pp * dp = " + std::to_string(tensor_ranks) + " * " + std::to_string(stages) + " * " +
                    std::to_string(replicas) + ": accepted is " + std::to_string(ranks) + ", the number of ranks");
  }
  check_divides("layers", model.layers, chunks > 1 ? "pp * interleave" : "pp", parts());
  check_divides("hidden", model.hidden, "heads", model.heads);
  check_divides("heads", model.heads, "tp", tensor_ranks);
  check_divides("global_batch", global_batch, "dp * micro_batch", replicas * micro_batch);
  if (chunks > 1 && (stages == 1 || micro_batches() % stages != 0)) {
    throw SpecError("interleave = " + std::to_string(chunks) + " with pp = " + std::to_string(stages) + " and " +
                    std::to_string(micro_batches()) +
                    " passes: accepted are several stages, and a multiple of pp passes");
  }
  if (sequence_parallel) check_divides("sequence", model.sequence, "tp", tensor_ranks);
  if (gradients.bytes == 3) throw SpecError("gradient = 3: accepted is 2 or 4");
}

void Setting::name_phases(Phases& named) {
  phases = {.forward = named.named("forward"),
            .backward = named.named("backward"),
            .tensor = named.named("tensor"),
            .pipeline = named.named("pipeline"),
            .gradients = named.named("gradients"),
            .embedding = named.named("embedding"),
            .optimizer = named.named("optimizer")};
}

// Matrices and the biases of what they make are divided; norms, and biases behind a sum, are not. The last stage has
// the words' vectors too.
std::uint64_t Setting::parameters_of(std::uint32_t stage) const {
  const std::uint64_t of_layer =
      12 * model.hidden * model.hidden / tensor_ranks + 7 * model.hidden / tensor_ranks + 6 * model.hidden;
  std::uint64_t sum = model.layers / stages * of_layer;
  if (stage == 0) sum += (words() + model.sequence) * model.hidden;
  if (stage + 1 == stages) sum += 2 * model.hidden + (stages > 1 ? words() * model.hidden : 0);
  return sum;
}

Duration Setting::product(std::uint64_t m, std::uint64_t n, std::uint64_t k) const {
  const auto operations = static_cast<std::uint64_t>(2.0 * static_cast<double>(m * n) * static_cast<double>(k) * 1e6 /
                                                     static_cast<double>(computing.matmul_ppm));
  return std::max(rates.product(m, n, k, Precision::half), rates.arithmetic(operations, Precision::half));
}

// Two products for each head, of which a fused kernel leaves out what the mask hides and never writes the scores, but
// computes them once more on the way back: five products then, else four.
Duration Setting::attention(bool is_backward) const {
  const std::uint64_t of_rank = micro_batch * model.heads / tensor_ranks;
  const std::uint64_t each = 2 * model.sequence * model.sequence * (model.hidden / model.heads) * of_rank;
  const std::uint64_t scores = of_rank * model.sequence * model.sequence;
  const std::uint64_t products = !is_backward ? 2 : computing.flash ? 5 : 4;
  const auto operations =
      static_cast<std::uint64_t>(static_cast<double>(each * products) * (computing.flash ? 0.5 : 1.0) * 1e6 /
                                 static_cast<double>(computing.matmul_ppm));
  const Duration products_take = rates.arithmetic(operations, Precision::half);
  if (computing.flash) return products_take;
  // Softmax reads and writes scores, and so does what drops some of them, with a mask of a byte each.
  const std::uint64_t touched = scores * 9;
  return std::max(products_take, rates.memory(scores * half * products)) +
         rates.memory(touched * (is_backward ? 2 : 1));
}

// Each product has two on the way back, and what is only read and written is read and written twice.
Duration Setting::layer(bool is_backward) const {
  const std::uint64_t n = tokens(), h = model.hidden, t = tensor_ranks, ways = is_backward ? 2 : 1;
  const std::uint64_t whole = n * h * half / (sequence_parallel ? t : 1);
  const Duration products =
      product(n, 3 * h / t, h) + product(n, h, h / t) + product(n, 4 * h / t, h) + product(n, h, 4 * h / t);
  const Duration norm = rates.memory(2 * whole);
  const Duration residual = rates.memory(3 * whole + whole / 2);  // with the mask of what is dropped
  const Duration nonlinear = rates.memory(8 * n * h / t * half);
  return (products + (norm + residual) * 2 + nonlinear) * ways + attention(is_backward);
}

// The words' vectors in the beginning; the product with all of them, and the loss, at the end.
Duration Setting::ends(std::uint32_t part, bool is_backward) const {
  const std::uint64_t n = tokens(), ways = is_backward ? 2 : 1;
  Duration sum{};
  if (is_first(part)) sum = sum + rates.memory(2 * n * model.hidden * half * ways);
  if (is_last(part)) sum = sum + (product(n, words(), model.hidden) + rates.memory(3 * n * words() * single)) * ways;
  return sum;
}

Duration Setting::forward_of(std::uint32_t part) const { return layer(false) * layers_of_part() + ends(part, false); }

Duration Setting::backward_of(std::uint32_t part) const {
  const Duration again = computing.recomputes ? layer(false) : Duration{};
  return (again + layer(true)) * layers_of_part() + ends(part, true);
}

// Adam: a gradient is read, the parameter in FP32 and two moments are read and written, and the parameter is written.
Duration Setting::optimizer_of(std::uint32_t part) const {
  const std::uint64_t own = parameters_of(part) / (gradients.scattered ? replicas : 1);
  return rates.memory(own * (gradients.bytes + 6 * single + half));
}

Counts Setting::forward_collectives(std::uint32_t part) const {
  const std::uint64_t of_layers = 2 * layers_of_part(), first = is_first(part), last = is_last(part);
  if (sequence_parallel) return {0, of_layers + first, of_layers + last, 3 * last};
  return {of_layers + first, 0, 0, 3 * last};
}

Counts Setting::backward_collectives(std::uint32_t part) const {
  const std::uint64_t of_layers = (computing.recomputes ? 4 : 2) * layers_of_part(), first = is_first(part),
                      last = is_last(part);
  if (sequence_parallel) return {0, of_layers + last, of_layers + first, 0};
  return {of_layers + last, 0, 0, 0};
}

void Setting::add_figures(Answer& answer, const Sent& sent) const {
  const double seconds = static_cast<double>(answer.time.ps) * 1e-12;
  const auto h = static_cast<double>(model.hidden), s = static_cast<double>(model.sequence),
             l = static_cast<double>(model.layers), v = static_cast<double>(model.vocabulary),
             b = static_cast<double>(global_batch);
  const double ranks = static_cast<double>(tensor_ranks) * stages * replicas;
  // Of scores that a mask hides what computes them counts, and what leaves them out does not.
  const double scores = computing.flash ? 0.5 : 1;
  const double of_layers = 24 * b * s * l * h * h * (1 + scores * s / (6 * h)), of_words = 6 * b * s * h * v;
  const double rate = (3 * of_layers + of_words) / seconds / ranks;
  const auto add = [&](const char* name, double value) { answer.figures.emplace_back(name, value); };
  add("tokens_per_s", b * s / seconds);
  add("model_flops_utilisation_share", rate / peak_per_s);
  add("gpu_flop_per_s", rate);
  if (computing.recomputes) {
    const double all = (4 * of_layers + of_words) / seconds / ranks;
    add("gpu_with_recomputing_flop_per_s", all);
    add("with_recomputing_share", all / peak_per_s);
  }
  add("tp", tensor_ranks);
  add("pp", stages);
  add("dp", replicas);
  add("micro_batches", static_cast<double>(micro_batches()));
  add("parameters", 12 * l * h * h + 13 * l * h + (v + s) * h);
  add("bubble_ideal_share", (static_cast<double>(stages) - 1) / static_cast<double>(micro_batches() * chunks));
  add("tensor_bytes", static_cast<double>(sent.tensor));
  add("pipeline_bytes", static_cast<double>(sent.pipeline));
  add("gradients_bytes", static_cast<double>(sent.gradients));
  add("embedding_bytes", static_cast<double>(sent.embedding));
}

}  // namespace dryfly::motif::transformer
