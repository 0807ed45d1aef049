// ZIP archives, as far as NumPy uses them: stored and deflated members, 64-bit sizes.
#include "runtime/base/MappedFile.h"
#include "tools/dspark-rt/Npy.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <zlib.h>

namespace dspark {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50;
// An archive may claim any size for a member; beyond this ratio deflate cannot have made it.
constexpr uint64_t kMaxDeflateRatio = 1040;

template <typename T> T number(std::span<const std::byte> bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Member {
  std::string name;
  uint16_t method = 0;
  uint64_t packed = 0, unpacked = 0, header = 0;
};

class Archive {
public:
  Archive(std::span<const std::byte> bytes, const std::string &path) : bytes(bytes), path(path) {}

  StatusOr<std::vector<HostTensor>> read() {
    DSPARK_RETURN_IF_ERROR(readDirectory());
    std::vector<HostTensor> tensors;
    for (const Member &member : members) {
      std::string label = path + ": member '" + member.name + "'";
      std::vector<std::byte> unpacked;
      DSPARK_RETURN_IF_ERROR(unpack(member, unpacked).in(label));
      DSPARK_ASSIGN_OR_RETURN(HostTensor tensor, parseNpy(unpacked, label));
      tensor.name =
          member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

private:
  Status broken(const std::string &what) const {
    return invalidArgument(path + ": not a usable .npz file: " + what);
  }
  Status readDirectory();
  Status readMember(uint64_t &at);
  Status unpack(const Member &member, std::vector<std::byte> &out) const;

  std::span<const std::byte> bytes;
  const std::string &path;
  std::vector<Member> members;
};

Status Archive::readDirectory() {
  constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
  if (bytes.size() < kEndBytes)
    return broken("it is too short");
  uint64_t end = bytes.size() - kEndBytes, lowest = end > 65535 ? end - 65535 : 0;
  while (number<uint32_t>(bytes, end) != kEnd)
    if (end-- == lowest)
      return broken("it has no end record");
  uint64_t count = number<uint16_t>(bytes, end + 10), at = number<uint32_t>(bytes, end + 16);
  if (count == 0xffff || at == 0xffffffff) {
    if (end < kLocatorBytes + kEnd64Bytes)
      return broken("its end record is cut off");
    uint64_t end64 = number<uint64_t>(bytes, end - kLocatorBytes + 8);
    if (end64 > bytes.size() - kEnd64Bytes || number<uint32_t>(bytes, end64) != kEnd64)
      return broken("its 64-bit end record is missing");
    count = number<uint64_t>(bytes, end64 + 32);
    at = number<uint64_t>(bytes, end64 + 48);
  }
  if (count > bytes.size() / 46)
    return broken("it claims " + std::to_string(count) + " members");
  for (uint64_t i = 0; i < count; ++i)
    DSPARK_RETURN_IF_ERROR(readMember(at));
  return Status::ok();
}

Status Archive::readMember(uint64_t &at) {
  constexpr uint64_t kBytes = 46;
  if (at > bytes.size() || bytes.size() - at < kBytes || number<uint32_t>(bytes, at) != kCentralHeader)
    return broken("its directory is damaged");
  Member member;
  member.method = number<uint16_t>(bytes, at + 10);
  member.packed = number<uint32_t>(bytes, at + 20);
  member.unpacked = number<uint32_t>(bytes, at + 24);
  member.header = number<uint32_t>(bytes, at + 42);
  uint64_t nameBytes = number<uint16_t>(bytes, at + 28), extraBytes = number<uint16_t>(bytes, at + 30);
  uint64_t next = at + kBytes + nameBytes + extraBytes + number<uint16_t>(bytes, at + 32);
  if (next > bytes.size())
    return broken("its directory is cut off");
  member.name.assign(reinterpret_cast<const char *>(bytes.data()) + at + kBytes, nameBytes);
  // The 64-bit extra field holds those of the three that the record has no room for, in this order.
  for (uint64_t extra = at + kBytes + nameBytes, end = extra + extraBytes; extra + 4 <= end;) {
    uint64_t size = number<uint16_t>(bytes, extra + 2), field = extra + 4;
    if (number<uint16_t>(bytes, extra) == 1)
      for (uint64_t *value : {&member.unpacked, &member.packed, &member.header})
        if (*value == 0xffffffff && field + 8 <= std::min(end, extra + 4 + size)) {
          *value = number<uint64_t>(bytes, field);
          field += 8;
        }
    extra += 4 + size;
  }
  at = next;
  members.push_back(std::move(member));
  return Status::ok();
}

Status Archive::unpack(const Member &member, std::vector<std::byte> &out) const {
  constexpr uint64_t kBytes = 30;
  if (member.header > bytes.size() || bytes.size() - member.header < kBytes ||
      number<uint32_t>(bytes, member.header) != kLocalHeader)
    return invalidArgument("its header is damaged");
  uint64_t start = member.header + kBytes + number<uint16_t>(bytes, member.header + 26) +
                   number<uint16_t>(bytes, member.header + 28);
  if (start > bytes.size() || member.packed > bytes.size() - start)
    return invalidArgument("its data is cut off");
  auto packed = bytes.subspan(start, member.packed);
  if (member.method == 0) {
    out.assign(packed.begin(), packed.end());
    return Status::ok();
  }
  if (member.method != 8)
    return {Code::Unsupported,
            "compression method " + std::to_string(member.method) + ", expected stored or deflate"};
  if (member.unpacked / kMaxDeflateRatio > member.packed)
    return invalidArgument("it claims to unpack to " + std::to_string(member.unpacked) + " bytes");
  out.resize(member.unpacked);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return {Code::OutOfMemory, "cannot start inflating"};
  // zlib counts in 32 bits, so both sides are fed in pieces.
  constexpr uint64_t kPiece = 1 << 30;
  uint64_t in = 0, done = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(packed.data() + in));
    stream.avail_in = uInt(std::min(kPiece, packed.size() - in));
    stream.next_out = reinterpret_cast<Bytef *>(out.data() + done);
    stream.avail_out = uInt(std::min(kPiece, out.size() - done));
    uInt inBefore = stream.avail_in, outBefore = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    in += inBefore - stream.avail_in;
    done += outBefore - stream.avail_out;
    if (inBefore == stream.avail_in && outBefore == stream.avail_out)
      break;
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || done != out.size())
    return invalidArgument("its compressed data is damaged");
  return Status::ok();
}

void append(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += char(value >> (8 * i));
}

// The part that local and central headers share, sizes in the 64-bit extra field.
void appendMemberFields(std::string &out, uint32_t crc, const std::string &name, size_t extraBytes) {
  append(out, 45, 2);         // version needed: 64-bit sizes
  append(out, 1 << 11, 2);    // UTF-8 names
  append(out, 0, 2);          // stored
  append(out, 0x21 << 16, 4); // 1980-01-01: equal inputs give equal files
  append(out, crc, 4);
  append(out, 0xffffffff, 4);
  append(out, 0xffffffff, 4);
  append(out, name.size(), 2);
  append(out, extraBytes, 2);
}

uint32_t crcOf(const std::vector<std::byte> &bytes) {
  return uint32_t(crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

} // namespace

StatusOr<std::vector<HostTensor>> readNpz(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  return Archive(file->bytes(), path).read();
}

Status writeNpz(const std::string &path, std::span<const HostTensor> tensors) {
  std::string temporary = path + ".tmp" + std::to_string(getpid());
  FILE *file = fopen(temporary.c_str(), "wb");
  if (!file)
    return {Code::IoError, path + ": cannot create: " + std::strerror(errno)};
  uint64_t offset = 0, count = 0;
  bool good = true;
  auto write = [&](const void *data, size_t bytes) {
    good = good && (bytes == 0 || fwrite(data, 1, bytes, file) == bytes);
    offset += bytes;
  };
  std::string directory;
  for (const HostTensor &tensor : tensors) {
    std::vector<std::byte> content = npyBytes(tensor);
    std::string name = tensor.name + ".npy", local;
    uint32_t crc = crcOf(content);
    append(directory, kCentralHeader, 4);
    append(directory, 45, 2);
    appendMemberFields(directory, crc, name, 28);
    directory.append(2 + 2 + 2 + 4, '\0'); // comment, disk, attributes
    append(directory, 0xffffffff, 4);
    directory += name;
    append(directory, 1, 2);
    append(directory, 24, 2);
    for (uint64_t value : {uint64_t(content.size()), uint64_t(content.size()), offset})
      append(directory, value, 8);
    append(local, kLocalHeader, 4);
    appendMemberFields(local, crc, name, 20);
    local += name;
    append(local, 1, 2);
    append(local, 16, 2);
    append(local, content.size(), 8);
    append(local, content.size(), 8);
    write(local.data(), local.size());
    write(content.data(), content.size());
    ++count;
  }
  uint64_t start = offset;
  write(directory.data(), directory.size());
  std::string end;
  uint64_t end64 = offset;
  append(end, kEnd64, 4);
  append(end, 44, 8);
  append(end, 45, 2);
  append(end, 45, 2);
  append(end, 0, 8);
  for (uint64_t value : {count, count, uint64_t(directory.size()), start})
    append(end, value, 8);
  append(end, 0x07064b50, 4); // where the 64-bit end record is
  append(end, 0, 4);
  append(end, end64, 8);
  append(end, 1, 4);
  append(end, kEnd, 4);
  append(end, 0, 4);
  append(end, 0xffffffff, 4); // counts
  append(end, 0xffffffff, 4);
  append(end, 0xffffffff, 4);
  append(end, 0, 2);
  write(end.data(), end.size());
  good = (fclose(file) == 0) && good;
  if (good && rename(temporary.c_str(), path.c_str()) == 0)
    return Status::ok();
  Status status{Code::IoError, path + ": cannot write: " + std::strerror(errno)};
  unlink(temporary.c_str());
  return status;
}

} // namespace dspark
