import { stat } from 'node:fs/promises'
import {
  type Logger,
  type OptionTable,
  type OptionValues,
  runUntilDrained,
  systemClock,
  WrongUsage,
} from '../core/index.ts'
import type { ResolvedContext } from '../kubeconfig/index.ts'
import type { ListenPlace, LocalProxy } from '../local-proxy/index.ts'
import { proxyOptions } from '../local-proxy/options/index.ts'
import { outputOption, pluginHostOf } from './cluster-source.ts'
import { defineCommand } from './command.ts'
import type { Io } from './io.ts'
import { createLogger } from './logger.ts'

/** A watch has no end of its own: whoever stops a proxy wants it gone. */
const graceMs = 1_000

const options = { ...proxyOptions, ...outputOption } as const satisfies OptionTable

type Values = OptionValues<typeof options>

/** `sallyport proxy`. */
export const proxyCommand = defineCommand({
  command: 'sallyport proxy',
  summary: 'Serve the Kubernetes API on this machine with your credentials, for browsers and curl',
  options,
  examples: [
    { line: 'sallyport proxy', does: 'open http://localhost:8001/ to see what you may open' },
    {
      line: 'sallyport proxy --port 0 --reject-methods POST,PUT,PATCH,DELETE',
      does: 'on a free port, for reading only',
    },
    {
      line: 'sallyport proxy --www ./ui --www-prefix /ui/ --api-prefix /api/',
      does: 'serves a page of your own beside the API that it uses',
    },
    {
      line: 'sallyport proxy --unix-socket /run/user/1000/k8s.sock',
      does: 'then: curl --unix-socket /run/user/1000/k8s.sock http://localhost/api/v1/pods',
    },
  ],
  run: async ({ options: values }, io) => {
    const listen = listenPlace(values)
    const { LocalProxy, transportFromKubeconfig } = await import('../local-proxy/index.ts')
    const log = createLogger({
      level: values.logLevel,
      format: 'text',
      clock: systemClock,
      write: (line) => io.stderr(line),
    })
    const context = await findContext(values, io)
    await warn(values, context.cluster.server, io)
    const transport = await transportFromKubeconfig({
      context,
      appendServerPath: values.appendServerPath,
      plugins: await pluginHostOf(io),
      env: io.env,
      log,
    })
    const proxy = new LocalProxy({
      listen,
      transport,
      namespace: context.namespace,
      apiPrefix: values.apiPrefix,
      ...(values.www !== undefined && { www: { directory: values.www, prefix: values.wwwPrefix } }),
      ...(!values.disableFilter && { filter: values }),
      keepAliveMs: values.keepalive,
      allowedRequestHeaders: values.allowRequestHeader,
      clock: systemClock,
      log,
    })
    await runProxy(proxy, log, io, () => {
      io.stdout(
        values.output === 'json'
          ? `${JSON.stringify({ address: proxy.address, server: transport.server })}\n`
          : `Starting to serve on ${proxy.address}\n`,
      )
    })
  },
})

/** As kubectl decides it: a port beside a socket is a mistake. */
function listenPlace({ unixSocket, port, address }: Values): ListenPlace {
  if (unixSocket === undefined) return { address, port }
  if (port === proxyOptions.port.default) return { unixSocket }
  throw new WrongUsage('--unix-socket and --port cannot be set at the same time')
}

async function findContext({ kubeconfig, context }: Values, io: Io): Promise<ResolvedContext> {
  const { loadContext } = await import('../kubeconfig/index.ts')
  const sources = {
    explicitPath: kubeconfig,
    kubeconfig: io.env['KUBECONFIG'],
    home: io.homeDirectory,
    inCluster: { env: io.env },
  }
  const { warnings, ...found } = await loadContext(sources, context)
  for (const warning of warnings) io.stderr(`warning: ${warning}\n`)
  return found
}

async function warn(values: Values, server: string, io: Io): Promise<void> {
  for (const line of await warnings(values, server)) io.stderr(`warning: ${line}\n`)
}

async function warnings(values: Values, server: string): Promise<string[]> {
  const { pathname } = new URL(server)
  const isOpen = values.unixSocket === undefined
  const isDirectory = values.www === undefined || (await isDirectoryAt(values.www))
  return [
    ...(values.appendServerPath || pathname === '/'
      ? []
      : [
          `the server's address has the path ${pathname}, which is left out: --append-server-path puts it before every path`,
        ]),
    ...(values.disableFilter && isOpen
      ? ['the filter is off: every web page that you visit can act as you']
      : []),
    ...(isOpen && !isLoopback(values.address)
      ? [`whoever can reach ${values.address} acts as you`]
      : []),
    ...(isDirectory ? [] : [`${values.www} is no directory that can be read`]),
  ]
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

const isDirectoryAt = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

async function runProxy(
  proxy: LocalProxy,
  log: Logger,
  io: Io,
  onReady: () => void,
): Promise<void> {
  await runUntilDrained([proxy], { drain: io.drain, kill: io.kill, graceMs, log, onReady })
}
