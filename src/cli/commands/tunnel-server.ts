import { tunnelServerOptions } from '../../tunnel/options/index.ts'
import { defineCommand } from '../command.ts'
import { outputOption } from '../shared-options.ts'

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
    const { runTunnelServer } = await import('../run-tunnel-server.ts')
    await runTunnelServer(values, io)
  },
})
