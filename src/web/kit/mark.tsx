/** The sign of Hostline, as in the icon of the tab. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="9" />
    <path d="M9 9v14M23 9v14M9 16h14" />
  </svg>
)
