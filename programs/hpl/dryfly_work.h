/* Where this header was before; now it is dryfly/work.h. */
#include "../../include/dryfly/work.h"
