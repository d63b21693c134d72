import { visibleLine } from '../../core/index.ts'
import type { Io } from '../io.ts'
import type { AddonProcess } from './addon-process.ts'

/** How news of add-ons are told. */
export interface AddonReport {
  readonly io: Pick<Io, 'stdout' | 'stderr'>
  readonly isJson: boolean
  /** For the proxy by which its page is looked at. */
  readonly kubeconfig: string
}

/** Says where an add-on is once it answers, or why it does not. */
export async function tellAddon(
  process: Pick<AddonProcess, 'addon' | 'path' | 'follow'>,
  { io, isJson, kubeconfig }: AddonReport,
): Promise<void> {
  const { addon } = process
  const asJson = (fields: object): void => io.stdout(`${JSON.stringify({ addon, ...fields })}\n`)
  await process.follow({
    answers: () =>
      isJson
        ? asJson({ path: process.path })
        : io.stdout(
            `The add-on ${addon} is at http://localhost:8001${process.path}?add-auth=true\n` +
              `  once a proxy of yours runs: sallyport proxy --kubeconfig ${kubeconfig}\n`,
          ),
    isSilent: (why) =>
      isJson
        ? asJson({ problem: why })
        : io.stderr(
            `warning: the add-on ${addon} does not answer: ${visibleLine(why)}\n` +
              '  everything else goes on; the log tells more\n',
          ),
  })
}
