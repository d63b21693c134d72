import type { Serving } from '../../apiserver/index.ts'
import { serverOptions } from '../../apiserver/options/index.ts'
import { type OptionTable, systemClock } from '../../core/index.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { AddonProcess } from './addon-process.ts'

const { default: usualAgentPort, ...agentPort } = serverOptions['tunnel-agent-port']
const { default: usualPort } = serverOptions['secure-port']

const options = {
  ...serverOptions,
  'bind-address': { ...serverOptions['bind-address'], default: ['127.0.0.1', '::1'] },
  tunnel: { ...serverOptions.tunnel, default: true },
  'tunnel-agent-port': {
    ...agentPort,
    defaultText: `${usualAgentPort}, or a free one if --secure-port is not ${usualPort}`,
  },
  'tunnel-local-agent': { ...serverOptions['tunnel-local-agent'], default: true },
  with: {
    type: 'choice',
    choices: ['whoami'],
    repeatable: true,
    group: 'Add-ons',
    describe:
      'add-on of this package to run as a Pod: whoami shows you who you are, and how it knows',
  },
  ...outputOption,
} as const satisfies OptionTable

/** A second cluster beside the first needs a port for the API only. */
const agentPortFor = (securePort: number): number => (securePort === usualPort ? usualAgentPort : 0)

/** `sallyport up`. */
export const upCommand = defineCommand({
  command: 'sallyport up',
  summary: 'Run everything on this machine: certificates, store, API server, tunnel; on loopback',
  options,
  examples: [
    {
      line: 'sallyport up',
      does: 'serves on port 6443 until Ctrl-C; the next start finds everything again',
    },
    {
      line: 'sallyport up --data-dir ./cluster --secure-port 7443',
      does: 'a second cluster beside the first',
    },
    {
      line: 'sallyport up --with whoami',
      does: 'an add-on to look at as well, which shows you who you are',
    },
    {
      line: 'sallyport up --output json',
      does: 'prints one line of JSON when it serves, and one for each add-on when that answers',
    },
  ],
  run: async ({ options: values }, io) => {
    const { runServer } = await import('../serve/run.ts')
    const { securePort, tunnelAgentPort = agentPortFor(securePort) } = values
    const addons: AddonProcess[] = []
    const onServing = ({ url, adminKubeconfig, listeners }: Serving): void => {
      if (values.output === 'json') {
        const result = { server: url, kubeconfig: adminKubeconfig, ...listeners }
        io.stdout(`${JSON.stringify(result)}\n`)
      } else {
        io.stdout(
          [
            '',
            `Sallyport serves the Kubernetes API at ${url}`,
            `Administrator's kubeconfig: ${adminKubeconfig}`,
            ...tunnelLines(listeners),
            ...addons.map(({ addon }) => `The add-on ${addon} starts; where it is follows`),
            `Machines join by the line that this prints: sallyport token create --kubeconfig ${adminKubeconfig}`,
            '',
            'Try next, in another terminal:',
            `  export KUBECONFIG=${adminKubeconfig}`,
            '  kubectl get namespaces',
            '  kubectl create configmap hello --from-literal=who=world',
            '  kubectl get configmaps --watch',
            '',
            'Ctrl-C stops it; the next start finds everything again.',
            '',
          ].join('\n'),
        )
      }
      const report = { io, isJson: values.output === 'json', kubeconfig: adminKubeconfig }
      for (const addon of addons) void tellAddon(addon, report)
    }
    const { AddonProcess } = await import('./addon-process.ts')
    const { tellAddon } = await import('./addon-process.ts')
    await runServer({ ...values, tunnelAgentPort }, io, {
      onServing,
      components: (parts) => {
        for (const name of new Set(values.with))
          addons.push(new AddonProcess({ ...parts, name, clock: systemClock, signal: io.drain }))
        return addons
      },
    })
  },
})

/** Where agents connect, and what one on another machine takes. */
function tunnelLines({ tunnel }: Readonly<Record<string, string>>): string[] {
  if (tunnel === undefined) return []
  const port = tunnel.slice(tunnel.lastIndexOf(':') + 1)
  const reach = /^(?:127\.|\[::1\])/.test(tunnel) ? ' (--tunnel-agent-bind-address opens it)' : ''
  return [
    `Tunnel agents connect to ${tunnel}; on another machine${reach}: sallyport tunnel agent ` +
      `--proxy-server-host HOST --proxy-server-port ${port} --ca-cert FILE --agent-cert FILE --agent-key FILE`,
  ]
}
