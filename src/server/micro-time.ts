let knownSecond = Number.NaN
let knownPrefix = ''

/** A time as Kubernetes' MicroTime writes it; most calls fall into the second of the one before. */
export function microTime(epochMs: number): string {
  const second = Math.floor(epochMs / 1_000)
  if (second !== knownSecond) {
    knownPrefix = new Date(second * 1_000).toISOString().slice(0, 20)
    knownSecond = second
  }
  const micros = Math.floor((epochMs - second * 1_000) * 1_000)
  return `${knownPrefix}${String(micros).padStart(6, '0')}Z`
}
