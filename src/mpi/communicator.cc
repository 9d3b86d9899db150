#include "mpi/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>

#include "mpi/api.h"
#include "mpi/process.h"

namespace spillway::mpi {
namespace {

// No other message travels on the private communicator.
constexpr int kTag = 5;
constexpr std::size_t kMessageBytesMax = std::size_t{1} << 30;

Status mpi_failed(int error, const char* what) {
  return Status(Code::io, fmt::format("{} failed with MPI error {}", what, error));
}

// What a rank tells the others when a communicator is first used for files.
struct Introduction {
  std::uint64_t nonce[2] = {0, 0};  // of the memory it shares with its node
  std::uint32_t process = 0;
  std::uint32_t ready = 0;
};

int delete_context(MPI_Comm, int, void* value, void*) {
  delete static_cast<std::shared_ptr<CommContext>*>(value);
  return MPI_SUCCESS;
}
int context_stays(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
int context_keyval() {
  static const int keyval = [] {
    int value = MPI_KEYVAL_INVALID;
    api().Comm_create_keyval(&context_stays, &delete_context, &value, nullptr);
    return value;
  }();
  return keyval;
}

// All-gather of parts of different length over MPI.
Status gather_over_mpi(MPI_Comm comm, int size, std::span<const std::byte> mine, comm::Gathered& out) {
  std::vector<int> lengths(static_cast<std::size_t>(size));
  const int length = static_cast<int>(mine.size());
  // MPI_INT without its handle: four bytes.
  int error = api().Allgather(&length, sizeof length, api().byte, lengths.data(), sizeof length, api().byte, comm);
  if (error != MPI_SUCCESS) return mpi_failed(error, "MPI_Allgather");
  std::vector<int> displacements(lengths.size());
  std::int64_t total = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    displacements[i] = static_cast<int>(total);
    total += lengths[i];
  }
  if (total > INT_MAX) return Status(Code::no_memory, "the ranks' file views are too large to exchange");
  std::vector<std::byte> all(static_cast<std::size_t>(total));
  error = api().Allgatherv(mine.data(), length, api().byte, all.data(), lengths.data(), displacements.data(),
                           api().byte, comm);
  if (error != MPI_SUCCESS) return mpi_failed(error, "MPI_Allgatherv");
  out.clear();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    out.append(std::span<const std::byte>(all).subspan(static_cast<std::size_t>(displacements[i]),
                                                       static_cast<std::size_t>(lengths[i])));
  }
  return {};
}

}  // namespace

// --- CommContext ---

std::shared_ptr<CommContext> CommContext::get(MPI_Comm comm, journal::Node* node, std::uint32_t process,
                                              int* mpi_error) {
  void* value = nullptr;
  int found = 0;
  *mpi_error = MPI_SUCCESS;
  if (api().Comm_get_attr(comm, context_keyval(), static_cast<void*>(&value), &found) == MPI_SUCCESS && found != 0) {
    return *static_cast<std::shared_ptr<CommContext>*>(value);
  }
  std::shared_ptr<CommContext> context(new CommContext());
  // A private copy without the program's attributes: its copy callbacks are not ours to run.
  MPI_Group group{};
  *mpi_error = api().Comm_group(comm, &group);
  if (*mpi_error == MPI_SUCCESS) *mpi_error = api().Comm_create(comm, group, &context->comm_);
  if (*mpi_error != MPI_SUCCESS) {
    context->comm_ = api().comm_null;
    return nullptr;
  }
  api().Group_free(&group);
  api().Comm_set_errhandler(context->comm_, api().errors_return);
  int size = 0;
  api().Comm_rank(context->comm_, &context->rank_);
  api().Comm_size(context->comm_, &size);

  Introduction mine;
  if (node != nullptr) {
    mine.nonce[0] = node->header().nonce[0];
    mine.nonce[1] = node->header().nonce[1];
    mine.process = process;
    mine.ready = 1;
  }
  std::vector<Introduction> all(static_cast<std::size_t>(size));
  *mpi_error = api().Allgather(&mine, sizeof mine, api().byte, all.data(), sizeof mine, api().byte, context->comm_);
  if (*mpi_error != MPI_SUCCESS) return nullptr;
  const auto without = std::find_if(all.begin(), all.end(), [](const Introduction& other) { return other.ready == 0; });
  if (without != all.end()) {
    if (without - all.begin() == context->rank_) Process::instance().say_why_not();
    return nullptr;
  }

  // Ranks that read the same nonce share memory: that is what a node is here.
  context->node_ = node;
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> nodes;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const int id =
        nodes.try_emplace({all[rank].nonce[0], all[rank].nonce[1]}, static_cast<int>(nodes.size())).first->second;
    context->node_of_.push_back(id);
  }
  context->node_count_ = static_cast<int>(nodes.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (context->node_of_[rank] != context->node_of_[static_cast<std::size_t>(context->rank_)]) continue;
    if (static_cast<int>(rank) == context->rank_) context->member_ = static_cast<int>(context->node_ranks_.size());
    context->node_ranks_.push_back(static_cast<int>(rank));
    context->node_processes_.push_back(all[rank].process);
  }

  // The context's own team, for opens: the node's first rank makes the block, all learn where it is.
  const int members = static_cast<int>(context->node_ranks_.size());
  std::uint64_t block = 0;
  Status refusal;
  if (context->member_ == 0) {
    Result<std::uint64_t> made = node->allocate_block(comm::Team::block_bytes(members));
    if (made.ok()) block = *made;
    if (!made.ok()) refusal = made.status();
  }
  std::vector<std::uint64_t> blocks(static_cast<std::size_t>(size));
  *mpi_error =
      api().Allgather(&block, sizeof block, api().byte, blocks.data(), sizeof block, api().byte, context->comm_);
  if (*mpi_error != MPI_SUCCESS) return nullptr;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const int leader =
        static_cast<int>(std::find(context->node_of_.begin(), context->node_of_.end(), context->node_of_[rank]) -
                         context->node_of_.begin());
    if (blocks[static_cast<std::size_t>(leader)] != 0) continue;
    if (leader == context->rank_) Process::instance().say_why_not(refusal.what());
    return nullptr;  // seen alike by all
  }
  context->block_ = blocks[static_cast<std::size_t>(context->node_ranks_.front())];
  context->team_ =
      std::make_unique<comm::Team>(node->block(context->block_), context->member_, members, context->hooks());

  auto kept = std::make_unique<std::shared_ptr<CommContext>>(context);
  *mpi_error = api().Comm_set_attr(comm, context_keyval(), kept.get());
  if (*mpi_error == MPI_SUCCESS) (void)kept.release();
  return context;
}

CommContext::~CommContext() {
  // The team's block is not given back: a slow member may still be looking at it. It is small, and goes with the job.
  if (!mpi_is_ending() && comm_ != api().comm_null) api().Comm_free(&comm_);
}

comm::WaitHooks CommContext::hooks() const {
  comm::WaitHooks hooks;
  hooks.progress = [this] { progress(); };
  hooks.members_alive = [this] {
    return std::all_of(node_processes_.begin(), node_processes_.end(),
                       [&](std::uint32_t process) { return node_->alive(process); });
  };
  return hooks;
}

void CommContext::progress() const {
  int flag = 0;
  // There is never a message with this tag to be found by probing: the call is made for what the MPI does meanwhile.
  api().Iprobe(MPI_ANY_SOURCE, kTag + 1, comm_, &flag, MPI_STATUS_IGNORE);
}

Status CommContext::allgatherv(std::span<const std::byte> mine, comm::Gathered& out) {
  if (node_count_ == 1) return team_->allgatherv(mine, out);
  return gather_over_mpi(comm_, size(), mine, out);
}

// --- MpiCommunicator ---

MpiCommunicator::MpiCommunicator(std::shared_ptr<CommContext> context, std::uint64_t block)
    : context_(std::move(context)),
      block_(block),
      team_(static_cast<std::byte*>(context_->node().block(block)) + offsetof(HandleBlock, team), context_->member(),
            static_cast<int>(context_->node_ranks().size()), context_->hooks()) {}

MpiCommunicator::~MpiCommunicator() {
  if (handle_block().users.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  context_->node().free_block(block_, HandleBlock::bytes(static_cast<int>(context_->node_ranks().size())));
}

Status MpiCommunicator::allgatherv(std::span<const std::byte> mine, comm::Gathered& out) {
  if (node_count() == 1) return team_.allgatherv(mine, out);
  return gather_over_mpi(context_->comm(), size(), mine, out);
}

Status MpiCommunicator::barrier() {
  if (node_count() == 1) return team_.barrier();
  const int error = api().Barrier(context_->comm());
  return error == MPI_SUCCESS ? Status() : mpi_failed(error, "MPI_Barrier");
}

Status MpiCommunicator::exchange(std::span<const comm::SendMessage> sends,
                                 std::span<const comm::ReceiveMessage> receives) {
  std::vector<MPI_Request> requests;
  std::vector<MPI_Datatype> types;
  int error = MPI_SUCCESS;
  const auto start = [&](int result) {
    if (error == MPI_SUCCESS) error = result;
  };
  for (const comm::ReceiveMessage& receive : receives) {
    // One message, scattered by a datatype straight to where its pieces belong. Absolute addresses, from MPI_BOTTOM.
    std::vector<int> lengths;
    std::vector<MPI_Aint> addresses;
    for (const comm::ReceivePiece& piece : receive.pieces) {
      for (std::size_t done = 0; done < piece.bytes; done += kMessageBytesMax) {
        lengths.push_back(static_cast<int>(std::min(kMessageBytesMax, piece.bytes - done)));
        addresses.push_back(reinterpret_cast<MPI_Aint>(piece.data + done));
      }
    }
    MPI_Datatype type{};
    start(api().Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), addresses.data(), api().byte,
                                     &type));
    if (error != MPI_SUCCESS) break;
    types.push_back(type);
    start(api().Type_commit(&types.back()));
    requests.emplace_back();
    start(api().Irecv(nullptr, 1, types.back(), receive.peer, kTag, context_->comm(), &requests.back()));
  }
  for (const comm::SendMessage& send : sends) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> addresses;
    for (std::size_t done = 0; done < send.bytes.size(); done += kMessageBytesMax) {
      lengths.push_back(static_cast<int>(std::min(kMessageBytesMax, send.bytes.size() - done)));
      addresses.push_back(reinterpret_cast<MPI_Aint>(send.bytes.data() + done));
    }
    MPI_Datatype type{};
    if (error != MPI_SUCCESS) break;
    start(api().Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), addresses.data(), api().byte,
                                     &type));
    if (error != MPI_SUCCESS) break;
    types.push_back(type);
    start(api().Type_commit(&types.back()));
    requests.emplace_back();
    start(api().Isend(nullptr, 1, types.back(), send.peer, kTag, context_->comm(), &requests.back()));
  }
  if (!requests.empty()) start(api().Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  for (MPI_Datatype& type : types) api().Type_free(&type);
  return error == MPI_SUCCESS ? Status() : mpi_failed(error, "the exchange between nodes");
}

std::uint64_t MpiCommunicator::commit_word() const {
  return block_ + offsetof(HandleBlock, team) + comm::Team::kCommitWordOffset;
}

namespace {

// Between nodes: a number in a window of rank 0.
class WindowCounter final : public comm::SharedCounter {
 public:
  explicit WindowCounter(MPI_Win window) : window_(window) {}
  ~WindowCounter() override {
    if (mpi_is_ending()) return;
    api().Win_unlock_all(window_);
    api().Win_free(&window_);  // by all ranks: the file is being closed
  }
  Result<std::int64_t> fetch_add(std::int64_t amount) override {
    return apply(amount, amount == 0 ? api().no_op : api().sum);
  }
  Status set(std::int64_t value) override { return apply(value, api().replace).status(); }

 private:
  Result<std::int64_t> apply(std::int64_t operand, MPI_Op operation) {
    std::int64_t before = 0;
    int error = api().Fetch_and_op(&operand, &before, api().int64, 0, 0, operation, window_);
    if (error == MPI_SUCCESS) error = api().Win_flush(0, window_);
    if (error != MPI_SUCCESS) return mpi_failed(error, "the shared file pointer");
    return before;
  }
  MPI_Win window_;
};

}  // namespace

Result<std::unique_ptr<comm::SharedCounter>> MpiCommunicator::make_counter() {
  if (node_count() == 1) {
    return std::unique_ptr<comm::SharedCounter>(
        std::make_unique<comm::LocalSharedCounter>(handle_block().shared_pointer));
  }
  MPI_Win window{};
  std::int64_t* value = nullptr;
  const MPI_Aint bytes = rank() == 0 ? sizeof(std::int64_t) : 0;
  int error = api().Win_allocate(bytes, sizeof(std::int64_t), api().info_null, context_->comm(),
                                 static_cast<void*>(&value), &window);
  if (error == MPI_SUCCESS && rank() == 0) *value = 0;
  if (error == MPI_SUCCESS) error = api().Win_lock_all(0, window);
  if (error == MPI_SUCCESS) error = api().Barrier(context_->comm());
  if (error != MPI_SUCCESS) return mpi_failed(error, "making the shared file pointer");
  return std::unique_ptr<comm::SharedCounter>(std::make_unique<WindowCounter>(window));
}

}  // namespace spillway::mpi
