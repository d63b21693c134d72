import type { OptionTable } from '../../core/index.ts'

const joining = 'Joining'
const hourMs = 3_600_000

/** Options of how nodes and people find this cluster and become part of it. */
export const discoveryOptions = {
  'cluster-signing-duration': {
    type: 'duration',
    min: 600_000,
    max: 87_600 * hourMs,
    default: 8_760 * hourMs,
    group: joining,
    describe: 'longest life of a certificate that is signed for a CertificateSigningRequest',
  },
} as const satisfies OptionTable
