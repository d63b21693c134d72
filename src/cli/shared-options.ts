import type { OptionTable } from '../core/index.ts'
import { serverOptions } from '../server/options/index.ts'

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

/** Where the server keeps everything, for commands that look for it there. */
export const dataDirectoryOption = {
  'data-dir': { ...serverOptions['data-dir'], group: 'Cluster' },
} as const satisfies OptionTable
