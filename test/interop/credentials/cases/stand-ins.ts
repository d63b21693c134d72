import { type ContestCase, credential, execUser, group, printing } from '../contest-case.ts'

const v1beta1 = { apiVersion: `${group}/v1beta1` }
const hangsMs = 2_000

/** The fifteen stand-in plugins of the fact sheet, and plugins that die. */
export const standInCases: readonly ContestCase[] = [
  { name: 'stand-in 1: presigned-token', user: execUser('presigned-token') },
  {
    name: 'stand-in 2: fresh-certificate',
    user: ({ caCert, caKey }) =>
      execUser('fresh-certificate', { CA_CERT: caCert, CA_KEY: caKey, SUBJECT: 'fresh-user' }),
  },
  { name: 'stand-in 3: v1beta1-only, asked for v1', user: execUser('v1beta1-only') },
  {
    name: 'stand-in 3: v1beta1-only, asked for v1beta1',
    user: execUser('v1beta1-only', {}, v1beta1),
  },
  {
    name: 'stand-in 4: cached-answer',
    user: ({ directory }) => execUser('cached-answer', { CACHE: `${directory}/cache` }),
  },
  { name: 'stand-in 5: asks-for-code, nobody there', user: execUser('asks-for-code') },
  { name: 'stand-in 6: warns', user: execUser('warns') },
  { name: 'stand-in 7: notice-before-answer', user: execUser('notice-before-answer') },
  {
    name: 'stand-in 8: hangs-without-terminal',
    user: execUser('hangs-without-terminal'),
    patienceMs: hangsMs,
    heavy: true,
    rules: { timeoutMs: 1_000 },
  },
  { name: 'stand-in 9: fails-silently', user: execUser('fails-silently') },
  { name: 'stand-in 10: needs-cluster, not told', user: execUser('needs-cluster') },
  {
    name: 'stand-in 10: needs-cluster, told',
    user: execUser('needs-cluster', {}, { provideClusterInfo: true }),
  },
  { name: 'stand-in 11: null-expiry', user: execUser('null-expiry') },
  { name: 'stand-in 12: slow', user: execUser('slow', { SECONDS_TO_WAIT: '1' }) },
  { name: 'stand-in 13: flood', user: execUser('flood', { FLOOD_BYTES: '20000000' }), heavy: true },
  {
    name: 'stand-in 14: leaves-daemon',
    user: execUser('leaves-daemon', { DAEMON_SECONDS: '5' }),
    patienceMs: hangsMs,
    heavy: true,
  },
  {
    name: 'stand-in 15: a command of its caller that is not there',
    user: execUser('', {}, { command: 'kubectl', args: ['no-such-subcommand', 'get-token'] }),
    env: ({ directory }) => ({ PATH: `${directory}:${process.env['PATH']}` }),
  },
  {
    name: 'dies: exit 3 with an answer',
    user: execUser('prints', { OUTPUT: credential({ token: 't' }), EXIT_CODE: '3' }),
  },
  {
    name: 'dies: killed',
    user: execUser('', {}, { command: 'sh', args: ['-c', 'kill -KILL $$'] }),
  },
  {
    name: 'dies: terminated',
    user: execUser('', {}, { command: 'sh', args: ['-c', 'kill -TERM $$'] }),
  },
  {
    name: 'rubbish: bytes that are no text',
    user: execUser('', {}, { command: 'sh', args: ['-c', 'printf "\\377\\376\\001"'] }),
  },
  { name: 'rubbish: a page of HTML', user: printing('<html><body>Sign in</body></html>') },
  { name: 'rubbish: half an answer', user: printing(credential({ token: 't' }).slice(0, -4)) },
  { name: 'rubbish: 10,000 brackets', user: printing('['.repeat(10_000)) },
]
