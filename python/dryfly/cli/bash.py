"""How bash is answered: it ends a word at = and at :, so that an option and its value, or a field and its value, come
as three words."""

from __future__ import annotations

from typing import Any

from click.shell_completion import BashComplete, CompletionItem

_ENDS = ("=", ":")


class Bash(BashComplete):
    _done = ""  # of the word in hand, what bash takes for words before it

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        if incomplete in _ENDS:
            args, incomplete = [*args, incomplete], ""
        while len(args) > 1 and args[-1] in _ENDS:
            if args[-2].startswith("--"):
                return args[:-1], incomplete
            self._done = args[-2] + args[-1] + self._done
            args, incomplete = args[:-2], args[-2] + args[-1] + incomplete
        return args, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        item.value = item.value.removeprefix(self._done)
        return super().format_completion(item)
