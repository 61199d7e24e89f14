// Which traffic class an end-point's messages travel in. As in the cxi provider the end-point's own label counts,
// then its domain's; who asks for none gets what MPICH_OFI_DEFAULT_TCLASS names, as under Cray MPICH
// (docs/model/classes.md#class-of-a-message), or best effort. What the machine's QoS profile lacks travels in its
// default class (core/network/fabric/qos.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::provider {

// The number on the wire, that of dryfly::TrafficClass; false for a label that libfabric does not define.
bool traffic_class_of(std::uint32_t endpoint_label, std::uint32_t domain_label, std::uint8_t& traffic_class);

// What MPICH_OFI_DEFAULT_TCLASS and MPICH_OFI_TCLASS_ERRORS of this process come to, against the classes of the
// machine's profile, which DRYFLY_TRAFFIC_CLASSES names. `text` says of all but `fine` why, in one sentence.
enum class ClassSettings : std::uint8_t { fine, doubtful, refused };
ClassSettings check_class_settings(char* text, std::size_t room);

}  // namespace dryfly::provider
