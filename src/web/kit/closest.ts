/** The nearest element around the target of an event. */
export function closest<E extends Element = HTMLElement>(
  { target }: { target: EventTarget | null },
  selector: string,
): E | null {
  return target instanceof Element ? target.closest<E>(selector) : null
}
