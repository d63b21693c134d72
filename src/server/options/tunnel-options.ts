import type { OptionTable } from '../../core/index.ts'

const tunnel = 'Tunnel'

/** Options of the tunnel inside the API server. */
export const tunnelOptions = {
  tunnel: {
    type: 'boolean',
    default: false,
    group: tunnel,
    describe: 'serve a port on which tunnel agents connect',
  },
  'tunnel-agent-bind-address': {
    type: 'address',
    defaultText: 'the first of --bind-address, or all addresses',
    group: tunnel,
    describe: 'address on which tunnel agents connect',
  },
  'tunnel-agent-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8091,
    placeholder: 'PORT',
    group: tunnel,
    describe: 'port on which tunnel agents connect; 0 takes a free one',
  },
  'tunnel-local-agent': {
    type: 'boolean',
    default: false,
    group: tunnel,
    describe: 'with --tunnel, also run an agent in this process',
  },
  egress: {
    type: 'choice',
    choices: ['direct', 'tunnel'],
    default: 'direct',
    group: tunnel,
    describe: 'how to dial Pods, Services and nodes; tunnel needs --tunnel',
  },
} as const satisfies OptionTable
