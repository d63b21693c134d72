import { tunnelAgentOptions } from '../../tunnel/options/index.ts'
import { defineCommand } from '../command.ts'
import { outputOption } from '../shared-options.ts'

/** `sallyport tunnel agent`. */
export const tunnelAgentCommand = defineCommand({
  command: 'sallyport tunnel agent',
  summary:
    "Run a tunnel agent in the place of Konnectivity's proxy-agent: it links this network to the control plane's",
  options: { ...tunnelAgentOptions, ...outputOption },
  examples: [
    {
      line: 'sallyport tunnel agent --proxy-server-host tunnel.example.com --ca-cert ca.crt --agent-cert agent.crt --agent-key agent.key',
      does: 'lets the control plane reach this network, with a client certificate as proof',
    },
    {
      line: 'sallyport tunnel agent --proxy-server-host 10.0.0.5,10.0.0.6 --ca-cert ca.crt --service-account-token-path /var/run/secrets/tokens/konnectivity-agent-token',
      does: 'connects to two servers, with a token of its service account',
    },
    {
      line: 'sallyport tunnel agent ... --feature-gates NodeToMasterTraffic=true --bind-address 10.64.0.1 --create-interface --target kubernetes.default.svc:443:6443',
      does: 'lets this node reach the API server at 10.64.0.1:6443 as well',
    },
  ],
  run: async ({ options: values }, io) => {
    const { runTunnelAgent } = await import('../run-tunnel-agent.ts')
    await runTunnelAgent(values, io)
  },
})
