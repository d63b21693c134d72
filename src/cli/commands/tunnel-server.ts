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
      line: 'sallyport tunnel server --mode http-connect --uds-name /run/konnectivity.sock --server-port 0 --cluster-cert server.crt --cluster-key server.key --cluster-ca-cert ca.crt',
      does: 'serves kube-apiserver on a unix socket, and agents with client certificates on port 8091',
    },
    {
      line: 'sallyport tunnel server ... --agent-namespace kube-system --agent-service-account konnectivity-agent --authentication-audience system:konnectivity-server --kubeconfig server.kubeconfig',
      does: 'knows agents by the tokens of their service account',
    },
    {
      line: 'sallyport tunnel server ... --feature-gates NodeToMasterTraffic=true --allowed-destination 10.0.0.5:6443',
      does: 'lets nodes reach the API server through their agents as well',
    },
  ],
  run: async ({ options: values }, io) => {
    const { runTunnelServer } = await import('../run-tunnel-server.ts')
    await runTunnelServer(values, io)
  },
})
