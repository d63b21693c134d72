import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CommandFailed, replaceFile, systemErrorCode } from '../core/index.ts'
import type { Kubeconfig } from './kubeconfig.ts'
import { renderKubeconfig } from './render-kubeconfig.ts'

/** Writes a kubeconfig for its owner's eyes only, replacing an existing file in one step. */
export async function writeKubeconfig(path: string, config: Kubeconfig): Promise<void> {
  await writeKubeconfigText(path, await renderKubeconfig(config))
}

/** Writes the text of a kubeconfig in the same way. */
export async function writeKubeconfigText(path: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await replaceFile(path, text, 0o600)
  } catch (cause) {
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('KUBECONFIG_UNWRITABLE', `cannot write ${path}: ${why}`, {
      hint: 'choose a place where this user may write',
      cause,
    })
  }
}
