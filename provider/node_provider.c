// libshm-fi.so: the other face of libcxi-fi.so. libfabric takes one provider from a file, and both faces have to be one
// library, because a rank has one channel to the simulator.
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

struct fi_provider* dryfly_node_provider(void);

__attribute__((visibility("default"))) struct fi_provider* fi_prov_ini(void) { return dryfly_node_provider(); }
