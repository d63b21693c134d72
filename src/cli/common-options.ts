import type { OptionTable } from '../core/index.ts'

/** The option that every command has. */
export const outputOption = {
  output: {
    type: 'choice',
    choices: ['text', 'json'],
    default: 'text',
    describe: 'form of the result on standard output',
    group: 'Output',
  },
} as const satisfies OptionTable

/** Where a server keeps everything. */
export const dataDirectoryOption = {
  'data-dir': {
    type: 'path',
    describe:
      'Directory with everything that is kept: /var/lib/sallyport for root, the XDG data directory for others unless given',
    group: 'Storage',
    placeholder: 'DIR',
  },
} as const satisfies OptionTable
