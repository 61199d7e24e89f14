#include "provider/nic_info.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/memory.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

int close_nic(fid* fid);
int control_nic(fid* fid, int command, void* argument);

fi_ops nic_operations = {
    .size = sizeof(fi_ops),
    .close = close_nic,
    .bind = unsupported,
    .control = control_nic,
    .ops_open = unsupported,
};

fid_nic* empty_nic() {
  auto* nic = allocate<fid_nic>();
  if (nic == nullptr) return nullptr;
  nic->fid.fclass = FI_CLASS_NIC;
  nic->fid.ops = &nic_operations;
  nic->device_attr = allocate<fi_device_attr>();
  nic->bus_attr = allocate<fi_bus_attr>();
  nic->link_attr = allocate<fi_link_attr>();
  if (nic->device_attr != nullptr && nic->bus_attr != nullptr && nic->link_attr != nullptr) return nic;
  close_nic(&nic->fid);
  return nullptr;
}

int close_nic(fid* fid) {
  auto* nic = object_of<fid_nic>(fid);
  if (nic->device_attr != nullptr) {
    free(nic->device_attr->name);
    free(nic->device_attr->device_id);
    free(nic->device_attr->vendor_id);
    free(nic->device_attr->driver);
  }
  if (nic->link_attr != nullptr) {
    free(nic->link_attr->address);
    free(nic->link_attr->network_type);
  }
  free(nic->device_attr);
  free(nic->bus_attr);
  free(nic->link_attr);
  free(nic);
  return 0;
}

bool copy_text(const char* text, char*& to) {
  if (text == nullptr) return true;
  to = strdup(text);
  return to != nullptr;
}

int control_nic(fid* fid, int command, void* argument) {
  if (command != FI_DUP) return -FI_ENOSYS;
  const auto* nic = object_of<fid_nic>(fid);
  fid_nic* copy = empty_nic();
  if (copy == nullptr) return -FI_ENOMEM;
  *copy->bus_attr = *nic->bus_attr;
  copy->link_attr->state = nic->link_attr->state;
  copy->link_attr->mtu = nic->link_attr->mtu;
  if (!copy_text(nic->device_attr->name, copy->device_attr->name) ||
      !copy_text(nic->device_attr->device_id, copy->device_attr->device_id) ||
      !copy_text(nic->device_attr->vendor_id, copy->device_attr->vendor_id) ||
      !copy_text(nic->device_attr->driver, copy->device_attr->driver) ||
      !copy_text(nic->link_attr->address, copy->link_attr->address) ||
      !copy_text(nic->link_attr->network_type, copy->link_attr->network_type)) {
    close_nic(&copy->fid);
    return -FI_ENOMEM;
  }
  *static_cast<fid_nic**>(argument) = copy;
  return 0;
}

}  // namespace

fid_nic* describe_nic(const char* name, std::uint32_t index, const char* node_name) {
  fid_nic* nic = empty_nic();
  if (nic == nullptr) return nullptr;
  const PciAddress pci = pci_address(index);
  nic->bus_attr->bus_type = FI_BUS_PCI;
  nic->bus_attr->attr.pci.domain_id = pci.domain;
  nic->bus_attr->attr.pci.bus_id = pci.bus;
  nic->bus_attr->attr.pci.device_id = pci.device;
  nic->bus_attr->attr.pci.function_id = pci.function;
  nic->link_attr->state = FI_LINK_UP;
  nic->link_attr->mtu = 2112;
  if (!copy_text(name, nic->device_attr->name) || !copy_text("dryfly", nic->device_attr->driver) ||
      !copy_text("0x17db", nic->device_attr->vendor_id) || !copy_text("0x501", nic->device_attr->device_id) ||
      !copy_text(node_name, nic->link_attr->address) || !copy_text("HPC Ethernet", nic->link_attr->network_type)) {
    close_nic(&nic->fid);
    return nullptr;
  }
  return nic;
}

}  // namespace dryfly::provider
