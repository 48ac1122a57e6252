"""Check a learner's parameter count of a model at many sizes; ask, and give hints.

>>> judge("bare-bones-lm", lambda vocab_size, d_model: 2 * vocab_size * d_model)
wrong at each of 100 sizes: with vocab_size = 1, d_model = 2 it gives 4, which is 1 too few
hint 1 of 3: look at head.bias: too few there
>>> judge("bare-bones-lm", lambda vocab_size, d_model: vocab_size * (2 * d_model + 1))
right at each of 100 sizes
"""

from tallystick.course.judge import TRIES as TRIES
from tallystick.course.judge import judge
from tallystick.course.judgement import Judgement, Trial
from tallystick.course.quiz import Question, quiz

__all__ = ["Judgement", "Question", "Trial", "judge", "quiz"]
