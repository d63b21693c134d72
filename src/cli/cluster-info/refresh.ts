import type { Refreshed } from '../../bootstrap/refresh/index.ts'
import { CommandFailed, kubeTime, type OptionTable, systemClock } from '../../core/index.ts'
import type { ContextHost } from '../../credentials/index.ts'
import { outputOption, pluginHostOf } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'

const minuteMs = 60_000

const options = {
  context: {
    type: 'string',
    describe: 'context whose cluster to refresh',
    group: 'Kubeconfig',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  kubeconfig: {
    type: 'path',
    describe: 'file to refresh instead of those that KUBECONFIG names',
    group: 'Kubeconfig',
    placeholder: 'FILE',
    defaultText: 'KUBECONFIG, or .kube/config in the home directory',
  },
  'keep-server': {
    type: 'boolean',
    default: false,
    describe: 'leave the addresses as they are and take over new roots only',
    group: 'Kubeconfig',
  },
  watch: {
    type: 'boolean',
    default: false,
    describe: 'go on until told to end, and refresh again and again',
    group: 'Refresh',
  },
  every: {
    type: 'duration',
    min: 1_000,
    default: 10 * minuteMs,
    describe: 'how often with --watch',
    group: 'Refresh',
  },
  ...outputOption,
} as const satisfies OptionTable

interface Order {
  readonly context: string | undefined
  readonly kubeconfig: string | undefined
  readonly keepServer: boolean
}

type Result = Refreshed & { readonly written: boolean; readonly file: string }

/** Reads the kubeconfig anew each time: others may write it too. */
async function refreshOnce(order: Order, host: ContextHost, io: Io): Promise<Result> {
  const { loadContext } = await import('../../kubeconfig/index.ts')
  const { entryOf, LocationLost, refreshKubeconfig } = await import(
    '../../bootstrap/refresh/index.ts'
  )
  const context = await loadContext(
    {
      explicitPath: order.kubeconfig,
      kubeconfig: io.env['KUBECONFIG'],
      home: io.homeDirectory,
    },
    order.context,
  )
  const entry = entryOf(context, systemClock)
  if (!entry)
    throw new CommandFailed('NO_KUBECONFIG', 'the cluster is in no kubeconfig file', {
      hint: 'name one with --kubeconfig',
    })
  const { cluster, user } = context
  const asked = { cluster, user, host, signal: io.drain, keepAddresses: order.keepServer }
  try {
    return { ...(await refreshKubeconfig({ ...asked, entry })), file: entry.file }
  } catch (error) {
    if (!(error instanceof LocationLost)) throw error
    throw new CommandFailed(error.code, error.message, { hint: error.hint, cause: error })
  }
}

async function report(result: Result, output: string, io: Io): Promise<void> {
  const { clusterLocation } = await import('../../kubeconfig/index.ts')
  const { rootPins } = await import('../../bootstrap/index.ts')
  const { changed, written, answeredBy, notes, file, cluster } = result
  const { addresses, clusterId, rootsPem } = clusterLocation(cluster)
  const pins = rootPins(rootsPem)
  for (const note of notes) io.stderr(`warning: ${note}\n`)
  if (output === 'json') {
    const facts = { changed, written, file, answeredBy, clusterId, addresses, pins, notes }
    io.stdout(`${JSON.stringify(facts)}\n`)
    return
  }
  const where = `${addresses.join(', ')}, ${pins.length === 1 ? 'one root' : `${pins.length} roots`}`
  if (!changed) io.stdout(`${file} is current: ${where}\n`)
  else if (written) io.stdout(`${file} refreshed: ${where}\n`)
  else io.stderr(`warning: ${file} was changed by somebody else meanwhile and is left alone\n`)
}

/** `sallyport cluster-info refresh`. */
export const clusterInfoRefreshCommand = defineCommand({
  command: 'sallyport cluster-info refresh',
  summary: 'Bring the location of a cluster in a kubeconfig up to date: addresses, roots, id',
  options,
  examples: [
    {
      line: 'sallyport cluster-info refresh',
      does: 'asks the cluster where it is and whom to trust, and writes that down',
    },
    {
      line: 'sallyport cluster-info refresh --kubeconfig ./prod.kubeconfig --watch',
      does: 'keeps a kubeconfig current, for example while a CA is replaced',
    },
  ],
  run: async ({ options: values }, io) => {
    const { pause } = await import('../../core/index.ts')
    const host = { plugins: await pluginHostOf(io), proxyEnv: io.env }
    const { watch, every, output, context, kubeconfig, keepServer } = values
    const order = { context, kubeconfig, keepServer }
    await report(await refreshOnce(order, host, io), output, io)
    while (watch) {
      await pause(every, io.drain)
      if (io.drain.aborted) return
      try {
        const result = await refreshOnce(order, host, io)
        if (result.changed) await report(result, output, io)
      } catch (error) {
        if (io.drain.aborted || !(error instanceof CommandFailed)) throw error
        io.stderr(`${kubeTime(systemClock.now())} ${error.code}: ${error.message}\n`)
      }
    }
  },
})
