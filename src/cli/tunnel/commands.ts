import { tunnelAgentOptions, tunnelServerOptions } from '../../tunnel/options/index.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'

/** `sallyport tunnel agent`. */
export const tunnelAgentCommand = defineCommand({
  command: 'sallyport tunnel agent',
  summary:
    "Run a tunnel agent in the place of Konnectivity's proxy-agent: it links this network to the control plane's",
  options: { ...tunnelAgentOptions, ...outputOption },
  examples: [
    {
      line: 'sallyport tunnel agent --ca-cert ca.crt --agent-cert agent.crt --agent-key agent.key',
      does: 'links this network to the server on this machine, with a client certificate as proof',
    },
    {
      line: 'sallyport tunnel agent --proxy-server-host 10.0.0.5,10.0.0.6 --config agent.yaml',
      does: 'connects to two servers; the rest stands in a file, for example service-account-token-path',
    },
    {
      line: 'sallyport tunnel agent --config agent.yaml --bind-address 10.64.0.1 --target api:6443:6443',
      does: 'lets this node reach api:6443 of the control plane at 10.64.0.1:6443, if the gate is open',
    },
  ],
  run: async ({ options: values }, io) => {
    const { runTunnelAgent } = await import('./run-agent.ts')
    await runTunnelAgent(values, io)
  },
})

/** `sallyport tunnel server`. */
export const tunnelServerCommand = defineCommand({
  command: 'sallyport tunnel server',
  summary:
    "Run a tunnel server in the place of Konnectivity's proxy-server: agents connect to it, kube-apiserver dials through it",
  options: { ...tunnelServerOptions, ...outputOption },
  examples: [
    {
      line: 'sallyport tunnel server --config server.yaml --uds-name /run/konnectivity.sock',
      does: 'serves kube-apiserver on a unix socket, and agents on port 8091',
    },
    {
      line: 'sallyport tunnel server --config server.yaml --agent-namespace kube-system',
      does: 'knows agents by the tokens of their service account, which the file names',
    },
    {
      line: 'sallyport tunnel server --config server.yaml --allowed-destination 10.0.0.5:6443',
      does: 'lets nodes reach the API server through their agents, if the file turns that on',
    },
  ],
  run: async ({ options: values }, io) => {
    const { runTunnelServer } = await import('./run-server.ts')
    await runTunnelServer(values, io)
  },
})
