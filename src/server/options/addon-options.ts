import { longestTimerMs, type OptionTable } from '../../core/index.ts'

const addon = 'Add-ons'

const checkOrigin = (text: string): string | undefined =>
  /^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$/.test(text)
    ? undefined
    : 'must be an origin, as in https://front.example'

/** Options of the proxy to Services, Pods and nodes, and of the identity that it tells add-ons. */
export const addonOptions = {
  'addon-token-key': {
    type: 'choice',
    choices: ['serving', 'dedicated'],
    default: 'serving',
    group: addon,
    describe:
      'what signs the tokens that tell add-ons their user: the serving key, or a key of its own that is published',
  },
  'addon-requests-per-second': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'proxied requests of one user per second',
  },
  'addon-request-burst': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 400,
    group: addon,
    describe: 'proxied requests that one user may send at once after a pause',
  },
  'addon-max-requests': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'proxied requests of one user at a time',
  },
  'addon-max-tunnels': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'proxied WebSockets and other upgraded connections of one user at a time',
  },
  'addon-bytes-per-second': {
    type: 'bytes',
    min: 1_024,
    max: 2 ** 40,
    default: 4 * 2 ** 20,
    group: addon,
    describe: 'bytes of one user per second in each direction, over all connections together',
  },
  'addon-max-request-age': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 600_000,
    group: addon,
    describe: 'longest time for a proxied request, its answer included',
  },
  'addon-max-tunnel-age': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 3_600_000,
    group: addon,
    describe: 'longest time for a proxied WebSocket or other upgraded connection',
  },
  'addon-idle-timeout': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 900_000,
    group: addon,
    describe: 'longest time in which nothing passes',
  },
  'addon-recheck-period': {
    type: 'duration',
    min: 100,
    max: 3_600_000,
    default: 15_000,
    group: addon,
    describe: 'how often the rights behind an open stream are checked again',
  },
  'addon-allowed-origin': {
    type: 'string',
    repeatable: true,
    check: checkOrigin,
    placeholder: 'ORIGIN',
    group: addon,
    describe:
      'origin whose pages may use the proxy, besides those of this server and of proxies on localhost',
  },
} as const satisfies OptionTable
