import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { parseOptions } from '../src/cli/options/index.ts'
import type { OptionTable } from '../src/core/index.ts'
import { problemsOfTunnelAgentOptions } from '../src/tunnel/agent/index.ts'
import { tunnelAgentOptions, tunnelServerOptions } from '../src/tunnel/options/index.ts'
import { problemsOfTunnelServerOptions } from '../src/tunnel/server/index.ts'
import { run } from './support/kubectl.ts'

const folder = new URL('../deploy/', import.meta.url)
const read = (name: string): Promise<string> => readFile(new URL(name, folder), 'utf8')

interface PodFile {
  readonly kind: string
  readonly spec: {
    readonly containers: readonly { readonly command: string[]; readonly args: string[] }[]
    readonly initContainers?: readonly { readonly args: string[] }[]
    readonly volumes: readonly { readonly name: string }[]
  }
}

const pod = async (name: string): Promise<PodFile> =>
  parseYaml(await read(name), { strict: true, uniqueKeys: true }) as PodFile

async function values<Table extends OptionTable>(options: Table, argv: readonly string[]) {
  const shape = { command: 'x', summary: '', options, examples: [] }
  const readNothing = (): Promise<string> => Promise.reject(new Error('no file'))
  return (await parseOptions(shape, { argv, env: {}, readFile: readNothing })).values
}

/** The words of ExecStart, with what systemd puts in. */
async function unitCommand(): Promise<string[]> {
  const text = await read('sallyport-tunnel-agent.service')
  const line = /^ExecStart=((?:.*\\\n)*.*)$/m.exec(text)?.[1] ?? ''
  const address = /^Environment=BIND_ADDRESS=(.*)$/m.exec(text)?.[1] ?? ''
  const words = line.replaceAll('\\\n', ' ').split(/\s+/)
  // oxlint-disable-next-line no-template-curly-in-string
  return words.map((word) => word.replaceAll('${BIND_ADDRESS}', address).replaceAll('%H', 'node1'))
}

const kubeletWords = (args: readonly string[]): string[] =>
  args.map((arg) => arg.replaceAll('$(NODE_NAME)', 'node1').replaceAll('$(HOST_IP)', '10.0.0.7'))

describe('[TUN-I4] the files to deploy hold what the programs take', () => {
  test('the static Pod of the agent', async () => {
    const { kind, spec } = await pod('tunnel-agent.pod.yaml')
    const { command = [], args = [] } = spec.containers[0] ?? {}
    const options = await values(tunnelAgentOptions, kubeletWords(args))
    expect([kind, command]).toEqual(['Pod', ['sallyport', 'tunnel', 'agent']])
    expect(problemsOfTunnelAgentOptions(options, () => true)).toEqual([])
    expect(spec.initContainers?.[0]?.args.join()).toContain(`replace ${options.bindAddress}/32`)
  })

  test('the static Pod of the server', async () => {
    const { kind, spec } = await pod('tunnel-server.pod.yaml')
    const { command = [], args = [] } = spec.containers[0] ?? {}
    const options = await values(tunnelServerOptions, args)
    expect([kind, command]).toEqual(['Pod', ['sallyport', 'tunnel', 'server']])
    expect(problemsOfTunnelServerOptions(options, () => true)).toEqual([])
  })

  test('the unit of the agent', async () => {
    const [program, ...words] = await unitCommand()
    expect([program, words.slice(0, 2)]).toEqual(['/usr/local/bin/sallyport', ['tunnel', 'agent']])
    const options = await values(tunnelAgentOptions, words.slice(2))
    expect(problemsOfTunnelAgentOptions(options, () => true)).toEqual([])
  })

  test('what an agent wants to reach is what the server allows', async () => {
    const [agent, server] = await Promise.all([
      pod('tunnel-agent.pod.yaml'),
      pod('tunnel-server.pod.yaml'),
    ])
    const { target } = await values(
      tunnelAgentOptions,
      kubeletWords(agent.spec.containers[0]?.args ?? []),
    )
    const { allowedDestination, agentPort } = await values(
      tunnelServerOptions,
      server.spec.containers[0]?.args ?? [],
    )
    expect(target).toEqual(allowedDestination.map((address) => `${address}:6443`))
    expect(agentPort).toBe(8132)
  })

  test('the socket of the server is the one that kube-apiserver is told', async () => {
    const { spec } = await pod('tunnel-server.pod.yaml')
    const options = await values(tunnelServerOptions, spec.containers[0]?.args ?? [])
    const egress = parseYaml(await read('egress-selector-configuration.yaml'), { strict: true })
    expect(egress).toMatchObject({
      apiVersion: 'apiserver.k8s.io/v1beta1',
      kind: 'EgressSelectorConfiguration',
      egressSelections: [
        {
          name: 'cluster',
          connection: {
            proxyProtocol: options.mode === 'http-connect' ? 'HTTPConnect' : 'GRPC',
            transport: { uds: { udsName: options.udsName } },
          },
        },
        { name: 'controlplane', connection: { proxyProtocol: 'Direct' } },
        { name: 'etcd', connection: { proxyProtocol: 'Direct' } },
      ],
    })
  })
})

test('[TUN-I4] systemd finds nothing wrong with the unit', async ({ skip }) => {
  const present = await run('systemd-analyze', ['--version']).catch(() => undefined)
  if (present?.code !== 0) skip('systemd-analyze is not there')
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-unit-'))
  const path = join(directory, 'sallyport-tunnel-agent.service')
  const text = await read('sallyport-tunnel-agent.service')
  // The program need not be installed where the tests run.
  await writeFile(path, text.replaceAll('/usr/local/bin/sallyport', process.execPath))
  const { code, stderr } = await run('systemd-analyze', ['verify', '--man=no', path])
  const ours = stderr.split('\n').filter((line) => line.includes('sallyport-tunnel-agent'))
  expect({ code, ours }).toEqual({ code: 0, ours: [] })
  await rm(directory, { recursive: true })
})
