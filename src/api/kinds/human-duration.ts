const second = 1000
const minute = 60 * second
const hour = 60 * minute

const pair = (large: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large}${unit}` : `${large}${unit}${small}${smallUnit}`

/** A duration with two or three significant figures, as `kubectl get` shows ages. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / second)
  // A clock that is a second behind is no reason to worry anybody.
  if (seconds < 0) return seconds < -1 ? '<invalid>' : '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(ms / minute)
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  return hoursAndMore(Math.floor(ms / hour), minutes)
}

function hoursAndMore(hours: number, minutes: number): string {
  const days = Math.floor(hours / 24)
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  if (days < 8) return pair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`
}
