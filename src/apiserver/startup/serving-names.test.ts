import { expect, test } from 'vitest'
import { parseOptions } from '../../cli/options/index.ts'
import { serverOptions } from '../options/index.ts'
import { servingNames, tunnelAddress } from './serving-names.ts'

async function options(...argv: string[]) {
  const shape = { command: 'sallyport serve', summary: '', options: serverOptions, examples: [] }
  const readFile = () => Promise.reject(new Error('no file'))
  return (await parseOptions(shape, { argv, env: {}, readFile })).values
}

test.each([
  ['all addresses by default', [], ''],
  ['the address of the API', ['--bind-address', '10.0.0.5'], '10.0.0.5'],
  ['one of its own', ['--tunnel-agent-bind-address', '10.0.0.6'], '10.0.0.6'],
  ['all of a family', ['--bind-address', '::1', '--tunnel-agent-bind-address', '::'], '::'],
])('agents connect to %s', async (_what, argv, address) => {
  expect(tunnelAddress(await options(...argv))).toBe(address)
})

test('the certificate names the address of agents, if there is a tunnel', async () => {
  const flags = ['--bind-address', '127.0.0.1', '--tunnel-agent-bind-address', '10.0.0.6']
  expect(servingNames(await options(...flags), '10.96.0.1')).not.toContain('10.0.0.6')
  expect(servingNames(await options('--tunnel', ...flags), '10.96.0.1')).toContain('10.0.0.6')
})
