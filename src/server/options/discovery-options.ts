import type { OptionTable } from '../../core/index.ts'

const joining = 'Joining'
const hourMs = 3_600_000

/** Options of how nodes and people find this cluster and become part of it. */
export const discoveryOptions = {
  'bootstrap-token': {
    type: 'string',
    secret: true,
    placeholder: 'TOKEN',
    group: joining,
    describe:
      'token by which machines may join, made at the first start; rather by environment or file',
  },
  'bootstrap-token-file': {
    type: 'path',
    placeholder: 'FILE',
    group: joining,
    describe:
      'file with that token, known before there is a cluster; later `token create` makes them',
  },
  'bootstrap-token-ttl': {
    type: 'duration',
    max: 100 * 365 * 24 * hourMs,
    default: 24 * hourMs,
    group: joining,
    describe: 'how long that token is good; 0 is forever',
  },
  'bootstrap-token-failures': {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 60,
    placeholder: 'NUMBER',
    group: joining,
    describe:
      'failures with bootstrap tokens within a minute after which an address is not listened to; 0 is no limit',
  },
  'cluster-signing-duration': {
    type: 'duration',
    min: 600_000,
    max: 87_600 * hourMs,
    default: 8_760 * hourMs,
    group: joining,
    describe: 'longest life of a certificate that is signed for a CertificateSigningRequest',
  },
} as const satisfies OptionTable
