import { serverOptions } from '../../apiserver/options/index.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'

/** `sallyport serve`. */
export const serveCommand = defineCommand({
  command: 'sallyport serve',
  summary: 'Run the API server with explicit flags, on all addresses unless told otherwise',
  options: { ...serverOptions, ...outputOption },
  examples: [
    {
      line: 'sallyport serve --advertise-address 10.0.0.5 --tls-san api.example.com',
      does: 'serves on every address; nodes are told 10.0.0.5',
    },
    { line: 'sallyport serve --config /etc/sallyport.yaml', does: 'takes options from a file' },
  ],
  run: async ({ options: values }, io) => {
    const { runServer } = await import('./run.ts')
    await runServer(values, io, {
      onServing: ({ url, adminKubeconfig, listeners }) => {
        const said = { server: url, kubeconfig: adminKubeconfig, ...listeners }
        io.stdout(
          values.output === 'json'
            ? `${JSON.stringify(said)}\n`
            : `serving at ${url}, administrator's kubeconfig ${adminKubeconfig}${tunnelPart(listeners)}\n`,
        )
      },
    })
  },
})

const tunnelPart = ({ tunnel }: Readonly<Record<string, string>>): string =>
  tunnel === undefined ? '' : `, tunnel agents connect to ${tunnel}`
