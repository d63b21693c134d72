import { defineCommand } from '../command.ts'
import { joinOptions } from './options.ts'

/** `sallyport join`. */
export const joinCommand = defineCommand({
  command: 'sallyport join',
  summary:
    'Find a cluster by an address and a token, make sure that it is the right one, and become part of it',
  arguments: [
    {
      name: 'ADDRESS',
      describe:
        'where an API server is: host, host:port, IP or https URL; several are tried in turn; with --as user and --as machine the NAME follows',
      repeatable: true,
    },
  ],
  options: joinOptions,
  examples: [
    {
      line: 'sallyport join 10.0.0.1 --token abcdef.0123456789abcdef',
      does: 'this machine becomes a node: HOSTNAME.kubeconfig has its certificate',
    },
    {
      line: 'sallyport join api.example.com --token-file token --tunnel-agent',
      does: 'the same with the token out of sight, and a tunnel agent in the end',
    },
    {
      line: 'sallyport join 10.0.0.1 --token-file token --as user jane --group developers',
      does: 'a kubeconfig for a person, once an administrator has approved the request',
    },
    {
      line: 'sallyport join 10.0.0.1 --token-file token --as machine laptop',
      does: 'the same for a machine on which `sallyport workload run` runs processes as Pods',
    },
    {
      line: 'curl https://example.com/cluster.yaml | sallyport join --cluster-info-file - --token-file token',
      does: 'the cluster is found by a document; the token only gets the certificate',
    },
    {
      line: 'sallyport join 10.0.0.1 --token-file token --discovery-only',
      does: 'address and CA, checked; nobody joins',
    },
  ],
  run: async ({ options: values, args }, io) => {
    const { runJoin } = await import('./run.ts')
    const { tellOutcome } = await import('./run.ts')
    const outcome = await runJoin(values, args, io)
    tellOutcome(outcome, values, io)
    if (!values.tunnelAgent || outcome.certDir === undefined) return
    const { runJoinedAgent } = await import('./run.ts')
    await runJoinedAgent({ ...outcome, certDir: outcome.certDir }, values, io)
  },
})
