import { createKubeClient, type Transport, transportFromKubeconfig } from '../../client/index.ts'
import { loadContext } from '../../kubeconfig/index.ts'

/** The page of an add-on, as the user of a kubeconfig gets it from the API server. */
export interface AddonPage {
  /** Rejects unless it is there. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>
  readonly close: () => void
}

/** A page that is asked for with its user; nothing is read or opened before the first time. */
export function addonPage(kubeconfig: string, path: string): AddonPage {
  let opened: Transport | undefined
  const asked = { method: 'GET', path: `${path}?add-auth=true`, headers: {} }
  return {
    ask: async (signal) => {
      opened ??= await open(kubeconfig)
      return createKubeClient({ transport: opened }).request(asked, signal)
    },
    close: () => opened?.destroy(),
  }
}

const open = async (kubeconfig: string): Promise<Transport> =>
  transportFromKubeconfig(await loadContext({ explicitPath: kubeconfig, home: '' }))
