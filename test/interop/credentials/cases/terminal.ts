import { type ContestCase, execUser, group } from '../contest-case.ts'

const v1beta1 = { apiVersion: `${group}/v1beta1` }

/** Table 2.4: what a plugin gets of the terminal. */
export const terminalCases: readonly ContestCase[] = [
  ...(['Never', 'IfAvailable', 'Always'] as const).flatMap((interactiveMode): ContestCase[] => [
    {
      name: `terminal: ${interactiveMode} at a terminal`,
      user: execUser('asks-for-code', {}, { interactiveMode }),
      typed: '4711\n',
    },
    {
      name: `terminal: ${interactiveMode} without a terminal`,
      user: execUser('asks-for-code', {}, { interactiveMode }),
    },
  ]),
  {
    name: 'terminal: v1beta1 without a mode, at a terminal',
    user: execUser('asks-for-code', {}, { ...v1beta1, interactiveMode: undefined }),
    typed: '4711\n',
  },
  {
    name: 'terminal: a question answered, stand-in 8',
    user: execUser('hangs-without-terminal', {}, { interactiveMode: 'IfAvailable' }),
    typed: 'y\n',
  },
]
