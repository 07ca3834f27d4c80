/* SPDX-License-Identifier: BSD-2-Clause */
/* As nic_rx_fuzz.c; the stranger is a peer here, and sends through rings. */
#define NIC_RX_LANES 1
#include "nic_rx_fuzz.c"
