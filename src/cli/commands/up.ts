import type { OptionTable } from '../../core/index.ts'
import { serverOptions } from '../../server/options/index.ts'
import { defineCommand } from '../command.ts'
import { outputOption } from '../shared-options.ts'

const options = {
  ...serverOptions,
  'bind-address': { ...serverOptions['bind-address'], default: ['127.0.0.1', '::1'] },
  ...outputOption,
} as const satisfies OptionTable

/** `sallyport up`. */
export const upCommand = defineCommand({
  command: 'sallyport up',
  summary: 'Run everything on this machine: certificates, store and API server, on loopback',
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
    { line: 'sallyport up --output json', does: 'prints one line of JSON when it serves' },
  ],
  run: async ({ options: values }, io) => {
    const { runServer } = await import('../run-server.ts')
    await runServer(values, io, ({ url, adminKubeconfig }) => {
      if (values.output === 'json') {
        io.stdout(`${JSON.stringify({ server: url, kubeconfig: adminKubeconfig })}\n`)
        return
      }
      io.stdout(
        [
          '',
          `Sallyport serves the Kubernetes API at ${url}`,
          `Administrator's kubeconfig: ${adminKubeconfig}`,
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
    })
  },
})
