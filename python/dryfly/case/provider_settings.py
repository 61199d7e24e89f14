"""Names of the cxi provider's settings, FI_CXI_*, by which a mistyped one is told from one without an effect.

Those of fi_cxi(7) and of libfabric's source up to 2.x, whether they do something here or not
(docs/reference/provider-settings.md): libfabric passes by a name that it does not know without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

PREFIX = "FI_CXI_"
NAMES = frozenset(
    PREFIX + name
    for name in (
        "ATS ATS_MLOCK_MODE CNTR_SPIN_BEFORE_YIELD CNTR_TRIG_CMDQ COLL_FABRIC_MGR_URL COLL_JOB_ID COLL_JOB_STEP_ID "
        "COLL_MCAST_TOKEN COLL_RETRY_USEC COLL_TIMEOUT_USEC COLL_USE_DMA_PUT COLL_USE_REPSUM COMPAT CQ_FILL_PERCENT CQ_POLICY "
        "CTRL_RX_EQ_MAX_SIZE DEFAULT_CQ_SIZE DEFAULT_RX_SIZE DEFAULT_TX_SIZE DEFAULT_VNI DEVICE_NAME "
        "DISABLE_ALT_READ_CMDQ DISABLE_CQ_HUGETLB DISABLE_CUDA_SYNC_MEMOPS DISABLE_DMABUF_CUDA DISABLE_DMABUF_ROCR "
        "DISABLE_EQ_HUGETLB DISABLE_HMEM_DEV_REGISTER DISABLE_HOST_REGISTER DISABLE_NON_INJECT_AMO_IDC "
        "DISABLE_NON_INJECT_MSG_IDC DISABLE_NON_INJECT_RMA_IDC ENABLE_TRIG_OP_LIMIT ENABLE_UNRESTRICTED_END_RO "
        "ENABLE_WRITEDATA EQ_ACK_BATCH_SIZE FC_RETRY_USEC_DELAY FORCE_DEV_REG_COPY FORCE_ODP FORCE_ZE_HMEM_SUPPORT "
        "HWCOLL_ADDRS_PER_JOB HWCOLL_MIN_NODES HYBRID_POSTED_RECV_PREEMPTIVE HYBRID_PREEMPTIVE HYBRID_RECV_PREEMPTIVE "
        "HYBRID_UNEXPECTED_MSG_PREEMPTIVE IOTLB LLRING_MODE MR_CACHE_EVENTS_DISABLE_POLL_NSECS "
        "MR_CACHE_EVENTS_DISABLE_LE_POLL_NSECS MR_MATCH_EVENTS MR_TARGET_ORDERING MSG_LOSSLESS MSG_OFFLOAD ODP "
        "OFLOW_BUF_COUNT OFLOW_BUF_MAX_CACHED OFLOW_BUF_MIN_POSTED OFLOW_BUF_SIZE OPTIMIZED_MRS PROV_KEY_CACHE "
        "RDZV_ALIGNED_SW_RGET RDZV_EAGER_SIZE RDZV_GET_MIN RDZV_PROTO RDZV_THRESHOLD REQ_BUF_MAX_CACHED "
        "REQ_BUF_MAX_COUNT REQ_BUF_MIN_POSTED REQ_BUF_SIZE RGET_TC RNR_APPEND_RETRY_TIMEOUT_US RNR_MAX_TIMEOUT_US "
        "RX_MATCH_MODE SAFE_DEVMEM_COPY_THRESHOLD SW_RX_TX_INIT_MAX TELEMETRY TELEMETRY_RGID TRUNC_OK ZBCOLL_RADIX"
    ).split()
)  # fmt: skip


def unknown(environment: Mapping[str, str]) -> dict[str, str]:
    """The nearest name by each that nobody reads; "": none is near."""
    found = {}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in NAMES:
            near = difflib.get_close_matches(name, sorted(NAMES), n=1, cutoff=0.85)
            found[name] = near[0] if near else ""
    return found
